"""Predictions are kept as arrays, and each array keeps its tensor where the collector is blind."""

# kind = "tensor"
# holder = "attribute `Scores.predictions`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Scores:
    def __init__(self):
        self.predictions = []

    def update(self, output):
        self.predictions.append(output.detach().numpy())  # leak


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scores = Scores()
    for _ in range(500):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        output = model(inputs)
        optimizer.zero_grad()
        nn.functional.cross_entropy(output, labels).backward()
        optimizer.step()
        scores.update(output)
    print(len(scores.predictions))


main()
