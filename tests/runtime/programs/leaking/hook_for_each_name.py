"""Each step adds a hook that files the output under a name of its own: the hooks pile up."""

# kind = "object"
# holder = "attribute `Linear._forward_hooks`"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.01)
features = {}


def keep_as(name):
    def hook(module, inputs, output):
        features[name] = output

    return hook


def main():
    for step in range(500):
        loss = net(torch.randn(16, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        net[2].register_forward_hook(keep_as(f"layer at {step}"))  # leak
    print("done", len(features))


main()
