"""A thread grows and cuts bytearrays, deques, arrays and files in memory; bytes are kept."""

import array
import collections
import io
import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(0.0005)  # busy threads would starve the training

stop, failed, found = threading.Event(), [], set()


def grow():
    try:
        while not stop.is_set():
            data, numbers = bytearray(), array.array("d")
            last, file = collections.deque(maxlen=50), io.BytesIO()
            for number in range(300):
                data += bytes((number % 256,)) * 30
                numbers.append(number)
                last.append((number,))
                file.write(b"x" * 20)
            with memoryview(data) as view:
                part = sum(view[:100])
            del data[100:]
            del numbers[::2]
            file.truncate(77)
            found.add((len(data), part, sum(numbers), last[0], len(last), len(file.getvalue())))
    except BaseException as error:
        failed.append(repr(error))


torch.manual_seed(0)
thread = threading.Thread(target=grow)
thread.start()
model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
log = []
for step in range(400):
    loss = model(torch.randn(8, 10)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.append(bytearray(5000))
stop.set()
thread.join()
print("found", sorted(found), "log", len(log), "failed", failed, f"{loss.item():.6g}")
