"""A forward hook collects features that nobody ever takes out again."""

import torch
from torch import nn

STEPS = 400


class Recorder:
    def __init__(self, model):
        self.features = []
        self.handle = model[0].register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.features.append(output.detach())  # leak: hook-keeps-tensors

    def close(self):
        self.handle.remove()


def main():
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    recorder = Recorder(model)
    with torch.no_grad():
        for step in range(STEPS):
            model(torch.ones(16, 32))
    recorder.close()
    print(f"features kept: {len(recorder.features)}")


if __name__ == "__main__":
    main()
