"""A thread is started now and then, and none ends."""

# kind = "threads"
# holder = ""
# per_step = 0.1

import torch
from torch import nn

torch.manual_seed(0)


import threading


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    done = threading.Event()
    for step in range(600):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            threading.Thread(target=done.wait, daemon=True).start()  # leak
    done.set()
    print("done")


main()
