"""The next batches are futures of a pool of threads; the training keeps its losses."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


def augmented(index):
    values = tuple((index * 31 + k) % 17 / 17 for k in range(320))
    table = {k: [value] for k, value in enumerate(values)}
    rows = [tuple(table[row * 10 + k][0] for k in range(10)) for row in range(32)]
    return torch.tensor(rows), torch.tensor([index % 2] * 32)


def main():
    torch.manual_seed(0)
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept, failed = [], []
    with ThreadPoolExecutor(3) as pool:
        ahead = deque(pool.submit(augmented, index) for index in range(6))
        for index in range(6, 306):
            ahead.append(pool.submit(augmented, index))
            try:
                rows, labels = ahead.popleft().result()
            except BaseException as error:
                failed.append(repr(error))
                continue
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(loss)
    print("steps", len(kept), "waiting", len(ahead), "failed", failed, f"{loss.item():.6g}")


main()
