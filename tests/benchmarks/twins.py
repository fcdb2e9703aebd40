"""Is a verdict changed by innocent code beside it? One table over programs that are made up here.

    python tests/benchmarks/twins.py [--list] [NAME ...]

Every leak of LEAKS is run alone and with each of ADDITIONS beside it, which never touch what leaks
but call something of theirs by the same name; every program of CLEAN lets go of what it gathers,
beside code that adds to something of that name. Columns: verdict, whether line and holder are
right, and the steps until the verdict. A NAME is a part of a program's, `list+` or `clean`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEPS = 3000
HEAD = """
import argparse
import os
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
import torch

{classes}
{more}
def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    {before}
    {setup}
    for step in range({steps}):
        optimizer.zero_grad()
        y = model(torch.randn(4, 16))
        loss = y.pow(2).mean()
        loss.backward()
        optimizer.step()
        {add}
        {during}


main()
"""


@dataclass(frozen=True, slots=True)
class Leak:
    """What leaks: the code that makes it, the line that adds, and how the holder is told."""

    holder: str
    setup: str
    add: str  # marked as the leak unless `classes` has the mark
    classes: str = ""
    buf: str = "buf"  # what `main` calls it by; "" if it cannot
    empties: str = "{buf}.clear()"
    of_class: str = ""  # whose instances have such a container each


METER = """
class Meter:
    def __init__(self):
        self.buf = []

    def add(self, x):
        self.buf.append(x)  # leak
"""
LEAKS = {
    "list": Leak("local `buf` in main()", "buf = []", "buf.append(y.detach())  # leak"),
    "deque": Leak("local `buf` in main()", "buf = deque()", "buf.append(y.detach())  # leak"),
    "dict": Leak("local `buf` in main()", "buf = {}", "buf[step] = y.detach()  # leak"),
    "defaultdict": Leak(
        "local `buf` in main()",
        "buf = defaultdict(list)",
        "buf[step % 4].append(y.detach())  # leak",
    ),
    "global": Leak(
        "global `buf`",
        "",
        "keep(y.detach())",
        "buf = []\n\ndef keep(x):\n    buf.append(x)  # leak\n",
    ),
    "attribute": Leak(
        "attribute `Meter.buf`",
        "meter = Meter()",
        "meter.add(y.detach())",
        METER,
        "meter.buf",
        of_class="Meter",
    ),
    "hook": Leak(
        "closure cell `buf` of hook()",
        "attach(model)",
        "pass",
        "def attach(model):\n    buf = []\n\n    def hook(module, given, out):\n"
        "        buf.append(out.detach())  # leak\n\n    model.register_forward_hook(hook)\n",
        "",
    ),
    "records": Leak(
        "attribute `Log.buf`",
        "log = Log()",
        "log.add(step, loss)",
        "class Log:\n    def __init__(self):\n        self.buf = []\n\n"
        "    def add(self, step, loss):\n"
        '        self.buf.append({"step": step, "loss": loss.detach()})  # leak\n',
        "log.buf",
        of_class="Log",
    ),
    "base": Leak(
        "attribute `Accuracy.buf`",
        "meter = Accuracy()",
        "meter.add(y.detach())",
        METER + "\n\nclass Accuracy(Meter):\n    pass\n",
        "meter.buf",
        of_class="Accuracy",
    ),
    "slots": Leak(
        "attribute `Bag.buf`",
        "bag = Bag()",
        "bag.buf.append(y.detach())  # leak",
        'class Bag:\n    __slots__ = ("buf",)\n\n    def __init__(self):\n        self.buf = []\n',
        "bag.buf",
        of_class="Bag",
    ),
    "field": Leak(
        "attribute `State.buf`",
        "state = State()",
        "state.buf[step] = y.detach()  # leak",
        "@dataclass\nclass State:\n    buf: dict = field(default_factory=dict)\n",
        "state.buf",
        of_class="State",
    ),
    "nested": Leak(
        "attribute `Trainer.buf`",
        "trainer = Trainer()",
        "trainer.keep(y)",
        "class Trainer:\n    def __init__(self):\n"
        '        self.buf = {"outputs": [], "targets": []}\n\n    def keep(self, y):\n'
        '        self.buf["outputs"].append(y.detach())  # leak\n',
        'trainer.buf["outputs"]',
        of_class="",
    ),
}
PAGE = """
class Page:
    def __init__(self):
        self.buf = []

    def note(self, x):
        self.buf.append(x)

    def turn(self):
        {turns}
"""


@dataclass(frozen=True, slots=True)
class Addition:
    """Innocent code: definitions, what `main` does before the loop, in each step, and when it adds.

    `around`: a condition that holds at each step.
    """

    more: str = ""
    before: str = "pass"
    during: str = "pass"
    around: str = "{add}"
    touches: bool = False  # the very container, in a branch that is never reached


IF = "if {}:\n            {{add}}"
ADDITIONS = {
    "alone": Addition(),
    "class clears": Addition(
        PAGE.format(turns="self.buf.clear()"),
        "page = Page()",
        "page.note(1.0)\n        if step % 50 == 49:\n            page.turn()",
    ),
    "class replaces": Addition(
        PAGE.format(turns="self.buf = []"),
        "page = Page()",
        "page.note(1.0)\n        if step % 50 == 49:\n            page.turn()",
    ),
    "parameter": Addition("def look(buf):\n    buf.clear()\n", during="look([])"),
    "local": Addition(
        "def count(n):\n    buf = []\n    for i in range(n):\n        buf.append(i)\n"
        "        if len(buf) > 2:\n            buf = []\n    return len(buf)\n",
        during="count(5)",
    ),
    "new object": Addition(
        "class Sheet:\n    pass\n",
        during="if step % 100 == 0:\n            page = Sheet()\n            page.buf = []",
    ),
    "no machine": Addition(during="if len({buf}) > 10**12:\n            {empties}", touches=True),
    "except": Addition(
        during="try:\n            float(step)\n        except MemoryError:\n            {empties}",
        touches=True,
    ),
    "handler": Addition(
        during="try:\n            float(step)\n        except ValueError:\n            {empties}",
        touches=True,
    ),
    "instance": Addition(
        before="other = {of_class}()",
        during="if step % 20 == 0:\n            other.buf.clear()",
    ),
    "rank": Addition('rank = int(os.environ.get("RANK", 0))\n', around=IF.format("rank == 0")),
    "setting": Addition(
        before="parser = argparse.ArgumentParser()\n"
        '    parser.add_argument("--keep", default=True)\n    args = parser.parse_args([])',
        around=IF.format("args.keep"),
    ),
    "left": Addition(around="if step >= 10**6:\n            break\n        {add}"),
    "warm-up": Addition(around=IF.format("step >= 10")),
    "skipped": Addition(before="skip = {{3, 7}}", around=IF.format("step not in skip")),
    "debug": Addition("DEBUG = False\n", during="if DEBUG:\n            {empties}", touches=True),
}
DISTRACTING = """
class Other:
    def __init__(self):
        self.buf = []

    def add(self, x):
        self.buf.append(x)


def grow(buf):
    buf.append(1.0)
"""
DISTRACTS = "Other().add(1.0)\n        grow([])"
# name -> setup, what is added, what lets go of it
CLEAN = {
    "every n": (
        "buf = []",
        "buf.append(y.detach())",
        "if step % 150 == 149:\n            buf.clear()",
    ),
    "replaced": (
        "meter = Other()",
        "meter.buf.append(y.detach())",
        "if step % 300 == 299:\n            meter.buf = []",
    ),
    "cut": ("buf = []", "buf.append(y.detach())", "del buf[:-200]"),
    "cut rarely": (
        "meter = Other()",
        "meter.add(y.detach())",
        "if len(meter.buf) > 400:\n            meter.buf = meter.buf[-100:]",
    ),
    "ring": ("buf = {}", "buf[step % 300] = y.detach()", "pass"),
    "drained": (
        "buf = deque()",
        "buf.append(y.detach())",
        "if step % 200 == 199:\n            while buf:\n                buf.popleft()",
    ),
    "limited": ("buf = []", "if len(buf) < 500:\n            buf.append(y.detach())", "pass"),
    "first steps": ("buf = []", "if step < 500:\n            buf.append(y.detach())", "pass"),
    "flag lowered": (
        "buf, keeps = [], True",
        "if keeps:\n            buf.append(y.detach())",
        "keeps = step < 400",
    ),
    "asked of an object": (
        "buf, levels = [], {'debug': True}",
        "if levels.get('debug'):\n            buf.append(y.detach())",
        "levels.update(debug=step < 400)",
    ),
    "maxlen": ("buf = deque(maxlen=700)", "buf.append(y.detach())", "pass"),
    "by turns": (
        "ten = [Other() for _ in range(10)]",
        "[each.add(y.detach()) for each in ten]",
        "if step % 30 == 29:\n            ten[step // 30 % 10].buf.clear()",
    ),
    "memo": (
        "buf = {}",
        "key = int(torch.randint(250, ())); buf[key] = buf.get(key, y.detach())",
        "pass",
    ),
}
EPOCHS = """
import torch
{more}
class Log:
    def __init__(self):
        self.buf = []


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    log = Log()
    for epoch in range(20):
        for step in range(300):
            optimizer.zero_grad()
            y = model(torch.randn(4, 16))
            y.pow(2).mean().backward()
            optimizer.step()
            log.buf.append(y.detach())
            {during}
        {turns}


main()
"""


def programs() -> Iterator[tuple[str, str, str]]:
    """Yield the name of each program, its source and its holder, "" of one that is clean."""
    for kind, leak in LEAKS.items():
        for beside, innocent in ADDITIONS.items():
            if beside == "instance" and not leak.of_class:
                continue
            if innocent.touches and not leak.buf:
                continue
            empties = leak.empties.format(buf=leak.buf)
            named = {"buf": leak.buf, "of_class": leak.of_class, "empties": empties}
            source = HEAD.format(
                classes=leak.classes,
                more=innocent.more,
                before=innocent.before.format(**named),
                setup=leak.setup,
                add=innocent.around.format(add=leak.add),
                during=innocent.during.format(**named),
                steps=STEPS,
            )
            yield f"{kind}+{beside}", source, leak.holder
    for kind, (setup, add, lets_go) in CLEAN.items():
        during = f"{lets_go}\n        {DISTRACTS}"
        named = {"classes": "", "before": "pass", "setup": setup, "add": add, "steps": STEPS}
        yield f"clean {kind}", HEAD.format(more=DISTRACTING, during=during, **named), ""
    for kind, turns in (("epoch clears", "log.buf.clear()"), ("epoch replaces", "log.buf = []")):
        during = DISTRACTS.replace("\n", "\n    ")
        yield f"clean {kind}", EPOCHS.format(more=DISTRACTING, during=during, turns=turns), ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of one program."""

    name: str
    verdict: str
    steps: int
    line: bool
    holder: bool
    told: str

    @property
    def right(self) -> bool:
        """Whether it is what the program deserves."""
        if self.name.startswith("clean"):
            return self.verdict == "steady"
        return self.verdict == "growing" and self.line and self.holder


def run(name: str, source: str, holder: str) -> Outcome:
    """Run a program under the sentinel in a process of its own, and compare what it says."""
    with tempfile.TemporaryDirectory() as folder:
        program, target = Path(folder) / "train.py", Path(folder) / "report.json"
        program.write_text(source)
        command = [sys.executable, "-m", "leakcheck", "run", "--json", str(target), str(program)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if not target.is_file():
            raise RuntimeError(f"{name}: no report\n{done.stdout}\n{done.stderr}")
        return outcome(name, source, holder, json.loads(target.read_text()))


def outcome(name: str, source: str, holder: str, report: dict[str, Any]) -> Outcome:
    """Compare what a report says of a program with what is true of it."""
    marked = [i for i, line in enumerate(source.splitlines(), 1) if line.endswith("# leak")]
    suspect = next(iter(report["suspects"]), {})
    lines = [each["line"] for each in suspect.get("locations", ())]
    told = report["reason"] or suspect.get("holder", "")
    right = suspect.get("holder", "").startswith(holder) if holder else not suspect
    steps = report["run"]["steps"]
    return Outcome(name, report["verdict"], steps, lines[:1] == marked, right, told)


def main(wanted: list[str]) -> int:
    """Print the table; 1 if a program is misjudged."""
    names = [each for each in wanted if each != "--list"]
    chosen = [one for one in programs() if not names or any(part in one[0] for part in names)]
    if "--list" in wanted:
        print(*(name for name, _, _ in chosen), sep="\n")
        return 0
    with ThreadPoolExecutor(2) as pool:
        outcomes = []
        for one in pool.map(lambda each: run(*each), chosen):
            outcomes.append(one)
            mark = " " if one.right else "!"
            places = f"{'line' if one.line else '-':5}{'holder' if one.holder else '-':7}"
            print(
                f"{mark} {one.name:28}{one.verdict:9}{places}{one.steps:6}  {one.told}", flush=True
            )
    print(f"{sum(one.right for one in outcomes)} of {len(outcomes)} right")
    return int(not all(one.right for one in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
