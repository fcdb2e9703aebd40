"""The outputs of step i are still bound while step i+1 makes its own."""

import torch
from torch import nn

STEPS = 300


class Engine:
    def __init__(self, process, loader):
        self.process, self.loader, self.output = process, loader, None

    def run(self):
        for batch in self.loader:
            self.output = self.process(batch)  # leak: previous-output-overlap


def main():
    model = nn.Linear(64, 4096)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        logits = model(torch.ones(8, 64))  # leak: previous-output-overlap
        loss = logits.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("done")


if __name__ == "__main__":
    main()
