"""A model that is switched by `model = model.train()` holds all of its outputs."""

# kind = "tensor"
# holder = "attribute `Linear.outputs`, from local `model` in main()"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(40):
        for _ in range(25):
            model = model.train()
            output = model(torch.randn(8, 16))
            optimizer.zero_grad()
            output.square().mean().backward()
            optimizer.step()
            model.outputs = getattr(model, "outputs", []) + [output.detach()]  # leak
        model = model.eval()
        with torch.no_grad():
            print(model(torch.ones(1, 16)).shape)


main()
