"""A queue that nobody drains."""

# kind = "tensor"
# holder = "local `waiting`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


import queue


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    waiting = queue.Queue()
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        waiting.put(inputs.clone())  # leak
    print(waiting.qsize())


main()
