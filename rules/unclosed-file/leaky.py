"""Each call reads a file that it leaves open."""

import json
import tempfile
from pathlib import Path

import torch

STEPS = 20


def load(path):
    return torch.tensor(json.load(open(path)))  # leak: unclosed-file


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.json"
        path.write_text("[1, 2, 3]")
        total = sum(load(path).sum().item() for _ in range(STEPS))
    print(f"total {total}")


if __name__ == "__main__":
    main()
