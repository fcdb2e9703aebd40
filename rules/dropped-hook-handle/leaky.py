"""A probe is made for every batch; its hook stays on the model when the probe is gone."""

import torch
from torch import nn

STEPS = 400


class Probe:
    def __init__(self, model):
        self.mask = torch.ones(2048)
        self.norm = 0.0
        model.register_forward_hook(self.measure)  # leak: dropped-hook-handle

    def measure(self, module, inputs, output):
        self.norm = float(output.detach().sum())


def main():
    model = nn.Linear(16, 16)
    for step in range(STEPS):
        probe = Probe(model)
        with torch.no_grad():
            model(torch.ones(4, 16))
    print(f"hooks on the model: {len(model._forward_hooks)}")


if __name__ == "__main__":
    main()
