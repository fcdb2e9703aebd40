"""A metric whose reset sets each of its lists by its name, every 300 steps of a long epoch."""

import torch
from torch import nn

torch.manual_seed(0)


class Accuracy:
    def __init__(self):
        self.defaults = {"outputs": [], "labels": []}
        self.reset()

    def reset(self):
        for name in self.defaults:
            setattr(self, name, [])

    def update(self, outputs, labels):
        self.outputs.append(outputs)
        self.labels.append(labels)

    def compute(self):
        return ((torch.cat(self.outputs) > 0) == torch.cat(self.labels)).float().mean().item()


def main():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    accuracy = Accuracy()
    for step in range(1, 1101):
        inputs = torch.randn(16, 8)
        labels = inputs.sum(1, keepdim=True) > 0
        outputs = model(inputs)
        loss = nn.functional.binary_cross_entropy_with_logits(outputs, labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy.update(outputs.detach(), labels)
        if step % 300 == 0:
            print(accuracy.compute())
            accuracy.reset()


main()
