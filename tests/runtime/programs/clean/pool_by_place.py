"""Active learning: rows get labels by their place, which leaves a list of those without one."""

import torch
from torch import nn

torch.manual_seed(0)


class Pool:
    def __init__(self, rows):
        self.rows, self.free = rows, list(range(len(rows)))
        self.known, self.labels = [], []

    def label(self, places):
        for place in places:
            self.free.remove(place)
            self.known.append(self.rows[place])
            self.labels.append((self.rows[place].sum() > 0).long())


def main():
    pool = Pool(torch.randn(800, 16))
    pool.label(pool.free[:20])
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(150):
        rows, labels = torch.stack(pool.known), torch.stack(pool.labels)
        for _ in range(20):
            picked = torch.randint(0, len(rows), (32,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(rows[picked]), labels[picked]).backward()
            optimizer.step()
        with torch.no_grad():
            sure = model(pool.rows[pool.free]).softmax(1).amax(1)
        pool.label([pool.free[at] for at in sure.argsort()[:25].tolist()])


main()
