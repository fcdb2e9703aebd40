"""A bounded window of tensors that fills up early, and a best loss."""

import torch
from torch import nn

torch.manual_seed(0)


from collections import deque


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    window = deque(maxlen=50)
    best = float("inf")
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        window.append(loss.detach().clone())
        best = min(best, loss.item())
    print(len(window))


main()
