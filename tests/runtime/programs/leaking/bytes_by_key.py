"""A dictionary of bytes by step: the garbage collector tracks neither it nor what is in it."""

# kind = "object"
# holder = "local `samples` in main()"
# per_step = 1
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    samples = {}
    for step in range(600):
        x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        samples[step] = x.numpy().tobytes() * 4  # leak
    print("done")


main()
