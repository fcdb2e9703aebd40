"""Classes that are made at run time and register themselves, each with a tensor."""

# kind = "tensor"
# holder = "Settings.known"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


class Settings:
    known = set()

    def __init_subclass__(cls):
        Settings.known.add(cls)  # leak


def main():
    model = nn.Linear(256, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(600):
        kept = (torch.rand(256) > 0.1).float()
        settings = type(f"Settings{step}", (Settings,), {"mask": kept})
        loss = model(torch.randn(8, 256) * settings.mask).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(len(Settings.known))


main()
