"""A module's buffer that gets longer by a batch."""

# kind = "tensor"
# holder = "Contrast.bank"
# per_step = 8192
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
        self.register_buffer("bank", torch.zeros(0, 64))

    @torch.no_grad()
    def push(self, keys):
        self.bank = torch.cat([keys, self.bank])  # leak

    def forward(self, rows):
        queries = self.encoder(rows)
        keys = self.encoder(rows).detach()
        loss = (queries - keys).pow(2).mean() + (queries @ self.bank[:512].T).pow(2).sum()
        self.push(keys)
        return loss


def main():
    model = Contrast()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(500):
        loss = model(torch.randn(32, 64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(len(model.bank))


main()
