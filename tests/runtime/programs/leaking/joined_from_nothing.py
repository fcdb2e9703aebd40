"""A cache that each step is joined to; the first value is bound where there was none."""

# kind = "tensor"
# holder = "attribute `Attention.keys`"
# per_step = 8192
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(128, 128)
        self.keys = None

    def forward(self, x):
        keys = self.project(x).detach()
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys])  # leak
        return self.project(x) @ self.keys.T


def main():
    model = Attention()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(500):
        loss = model(torch.randn(16, 128)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item() < 10)


main()
