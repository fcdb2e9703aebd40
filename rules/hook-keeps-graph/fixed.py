import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


class Probe:
    def __init__(self, layer):
        self.activations = []
        self.handle = layer.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.activations.append(output.mean().detach().cpu())

    def reset(self):
        self.activations = []

    def close(self):
        self.handle.remove()


probe = Probe(model[0])
for step in range(400):
    model(torch.randn(8, 16))
print(f"{len(probe.activations)} activations kept")
probe.reset()
probe.close()
