"""A list that is kept, beside a metric that sets its lists anew every 300 steps: not they leak."""

# kind = "tensor"
# holder = "local `kept` in main()"
# per_step = 1
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


class EpochMetric:
    def __init__(self):
        self.reset()

    def reset(self) -> None:
        self.outputs: list[torch.Tensor] = []
        self.labels: list[torch.Tensor] = []

    def update(self, outputs, labels):
        self.outputs.append(outputs.detach().clone())
        self.labels.append(labels.clone())

    def compute(self):
        return torch.cat(self.outputs).mean().item()


def main():
    model = nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    metric, kept = EpochMetric(), []
    for step in range(1, 1201):
        inputs = torch.randn(16, 10)
        labels = (inputs.sum(1) > 0).float()
        outputs = model(inputs).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(outputs, labels)
        kept.append(outputs.detach())  # leak
        if step % 300 == 0:
            print(metric.compute())
            metric.reset()


main()
