"""Active learning: each round moves samples from a pool to those with labels, until it is empty."""

import torch
from torch import nn

torch.manual_seed(0)


class Pool:
    def __init__(self, size):
        self.unlabelled = {index: torch.randn(32) for index in range(size)}
        self.labelled = {}

    def query(self, model, count):
        candidates = list(self.unlabelled)[:200]
        if not candidates:
            return
        with torch.no_grad():
            scores = model(torch.stack([self.unlabelled[each] for each in candidates])).max(1)
        for place in scores.values.topk(min(count, len(candidates))).indices.tolist():
            x = self.unlabelled.pop(candidates[place])
            label = (x.sum() > 0).long()
            self.labelled[candidates[place]] = {"x": x, "y": label, "weight": torch.ones(64)}

    def batch(self, count):
        samples = list(self.labelled.values())
        picked = [samples[at] for at in torch.randint(0, len(samples), (count,)).tolist()]
        return torch.stack([one["x"] for one in picked]), torch.stack([one["y"] for one in picked])


def main():
    pool = Pool(2000)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(250):
        pool.query(model, 12)
        for _ in range(10):
            x, y = pool.batch(32)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


main()
