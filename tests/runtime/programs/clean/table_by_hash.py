"""What is known of each sample, by a name that tells no number: full after the first epoch."""

import torch
from torch import nn

torch.manual_seed(0)
SAMPLES, BATCH = 14_400, 16


def name_of(index):
    return f"{index * 2654435761 % 2**32:08x}"


class Statistics:
    def __init__(self):
        self.table = {}

    def update(self, names, losses, outputs):
        for name, loss, output in zip(names, losses.tolist(), outputs):
            self.table[name] = (loss, output.detach().clone())


def main():
    inputs = torch.randn(SAMPLES, 16)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    statistics = Statistics()
    for _ in range(2):
        order = torch.randperm(SAMPLES).tolist()
        for start in range(0, SAMPLES, BATCH):
            batch = order[start : start + BATCH]
            outputs = model(inputs[batch])
            losses = (outputs - inputs[batch, :4]).square().mean(1)
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            statistics.update(map(name_of, batch), losses.detach(), outputs)


main()
