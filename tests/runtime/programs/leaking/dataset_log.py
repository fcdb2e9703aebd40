"""A dataset notes each sample that it gives out, in a list that passes its own length."""

# kind = "object"
# holder = "attribute `Noted.seen`"
# per_step = 4
# unit = ""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Noted(torch.utils.data.Dataset):
    def __init__(self):
        self.seen = []

    def __len__(self):
        return 400

    def __getitem__(self, index):
        sample = np.full(256, index, dtype=np.float32)
        self.seen.append((index, sample))  # leak
        return sample


def main():
    loader = torch.utils.data.DataLoader(Noted(), batch_size=4, shuffle=True)
    model = nn.Linear(256, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(8):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
    print("done")


main()
