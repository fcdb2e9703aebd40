"""A dataset keeps each sample it reads, and all of them together are larger than the machine."""

# kind = "tensor"
# holder = "attribute `Cached.cache`"
# per_step = 2
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


class Cached(torch.utils.data.Dataset):
    def __init__(self):
        self.cache = {}

    def __len__(self):
        return 100_000_000

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = torch.randn(4096)  # leak
        return self.cache[index]


def main():
    data = Cached()
    model = nn.Sequential(nn.Linear(4096, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(600):
        batch = torch.stack([data[2 * step], data[2 * step + 1]])
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
    print("done")


main()
