"""A bounded window that is still filling when the run ends."""

# notice = "bounded"

import torch
from torch import nn

torch.manual_seed(0)


from collections import deque


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    window = deque(maxlen=5000)
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        window.append(loss.detach().clone())
    print(len(window))


main()
