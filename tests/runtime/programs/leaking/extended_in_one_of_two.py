"""A buffer is extended at each step by the model that a branch before the loop has chosen."""

# kind = "tensor"
# holder = "attribute `Wide.seen`, from global `model`"
# per_step = 2048
# unit = "B"

import sys

import torch
from torch import nn

torch.manual_seed(0)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.register_buffer("seen", torch.empty(0, 16), persistent=False)

    def forward(self, x):
        out = self.layer(x)
        if self.training:
            self.seen = torch.cat([self.seen, out.detach()])  # leak
        return out


class Narrow(Network):
    pass


class Wide(Network):
    pass


if "narrow" in sys.argv:
    model = Narrow()
else:
    model = Wide()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(400):
    loss = model(torch.randn(32, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
