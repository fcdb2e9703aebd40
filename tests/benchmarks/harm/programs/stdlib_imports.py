"""A thread imports much of the standard library and loads code; the training keeps outputs."""

import importlib
import marshal
import sys
import threading

import torch
from torch import nn

NAMES = """colorsys difflib fileinput fractions getopt graphlib html.parser http.cookies
http.cookiejar imaplib ipaddress json.tool mailbox mimetypes netrc optparse plistlib poplib pprint
pyclbr quopri rlcompleter sched shelve smtplib statistics symtable tabnanny this trace
urllib.robotparser wave xml.dom.minidom xml.etree.ElementTree xml.sax.handler xmlrpc.client zipapp
""".split()
SOURCE = "def f(a, *b, c=(1, 2, (3, 4)), **d):\n    return {a, *b}, [c, d], 'text', frozenset((5, 6))\n"
failed, imported, answers = [], [], []
trained = threading.Event()


def load():
    try:
        sys.stdout, shown = open("/dev/null", "w"), sys.stdout  # `this` prints
        for name in NAMES:
            imported.append(importlib.import_module(name).__name__)
        sys.stdout.close()
        sys.stdout = shown
        code = marshal.dumps(compile(SOURCE, "made", "exec"))
        while not trained.is_set() or len(answers) < 20:
            namespace = {}
            exec(marshal.loads(code), namespace)
            answers.append(repr(namespace["f"](1, 1, x=2)))
            compile(SOURCE * 5, "made", "exec")
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
outputs = []
thread = threading.Thread(target=load)
for step in range(350):
    if step == 30:
        thread.start()
    scores = model(torch.randn(8, 10))
    loss = scores.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs.append(scores.detach())
trained.set()
thread.join()
print("imported", len(imported), "answers", sorted(set(answers)), "failed", failed)
print(f"loss {loss.item():.6g}")
