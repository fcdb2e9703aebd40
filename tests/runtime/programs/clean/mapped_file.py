"""A dataset in a mapped file, each page of which is read once: resident memory grows, none is lost."""

import tempfile
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)
ROWS, COLUMNS = 9000, 1024


def main():
    model = nn.Sequential(nn.Linear(COLUMNS, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.bin"
        path.write_bytes(bytes(4 * ROWS * COLUMNS))
        rows = torch.from_file(str(path), shared=True, size=ROWS * COLUMNS).view(ROWS, COLUMNS)
        for start in range(0, ROWS, 8):
            optimizer.zero_grad()
            model(rows[start : start + 8]).pow(2).mean().backward()
            optimizer.step()
    print("done")


main()
