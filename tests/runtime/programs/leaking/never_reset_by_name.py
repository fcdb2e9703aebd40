"""A metric whose reset would set each of its lists by its name, and nobody calls it."""

# kind = "tensor"
# holder = "attribute `Accuracy.outputs`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Accuracy:
    def __init__(self):
        self.defaults = {"outputs": []}
        self.reset()

    def reset(self):
        for name in self.defaults:
            setattr(self, name, [])

    def update(self, outputs):
        self.outputs.append(outputs)  # leak


def main():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    accuracy = Accuracy()
    for _ in range(400):
        inputs = torch.randn(16, 8)
        labels = inputs.sum(1, keepdim=True) > 0
        outputs = model(inputs)
        loss = nn.functional.binary_cross_entropy_with_logits(outputs, labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy.update(outputs.detach())


main()
