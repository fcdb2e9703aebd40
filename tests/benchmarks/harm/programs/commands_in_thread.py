"""A thread runs commands and reads what they say; the training keeps its losses."""

import subprocess
import threading

import torch
from torch import nn

failed, texts = [], []


def run_commands():
    try:
        for number in range(25):
            done = subprocess.run(["echo", str(number)], capture_output=True, text=True, check=True)
            texts.append(done.stdout.strip())
            with subprocess.Popen(["cat"], stdin=-1, stdout=-1) as cat:
                texts.append(cat.communicate(str(-number).encode())[0].decode())
        refused = subprocess.run(["sh", "-c", "exit 3"], close_fds=False)
        texts.append(f"status {refused.returncode}")
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=run_commands)
thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(300):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
thread.join()
print("texts", len(texts), texts[-3:], "failed", failed, f"{losses[-1].item():.6g}")
