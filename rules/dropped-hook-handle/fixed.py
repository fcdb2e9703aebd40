"""A probe is made for every batch, and takes its hook off again."""

import torch
from torch import nn

STEPS = 400


class Probe:
    def __init__(self, model):
        self.mask = torch.ones(2048)
        self.norm = 0.0
        self.handle = model.register_forward_hook(self.measure)

    def measure(self, module, inputs, output):
        self.norm = float(output.detach().sum())

    def close(self):
        self.handle.remove()


def main():
    model = nn.Linear(16, 16)
    for step in range(STEPS):
        probe = Probe(model)
        with torch.no_grad():
            model(torch.ones(4, 16))
        probe.close()
    print(f"hooks on the model: {len(model._forward_hooks)}")


if __name__ == "__main__":
    main()
