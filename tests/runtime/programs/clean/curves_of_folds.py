"""Cross-validation: a fold's curve grows through its epochs, and the critic has steps of its own."""

import torch
from torch import nn

torch.manual_seed(0)
INPUTS, LABELS = torch.randn(640, 12), torch.randint(0, 3, (640,))


def train(fold):
    chosen = torch.arange(640) % 4 != fold
    inputs, labels = INPUTS[chosen], LABELS[chosen]
    model = nn.Linear(12, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    curve = []
    for _ in range(12):
        for rows, wanted in zip(inputs.split(32), labels.split(32)):
            for _ in range(2):
                loss = nn.functional.cross_entropy(model(rows), wanted)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                curve.append(loss.detach())
    return torch.stack(curve).mean().item()


print([round(train(fold), 3) for fold in range(4)])
for fold in range(4):
    print(fold, train(fold))
