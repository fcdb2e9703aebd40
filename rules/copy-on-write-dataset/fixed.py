"""The items are packed into two tensors: a few objects, whatever the number of items."""

import json

import torch
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH, ITEMS = 200, 256, 200_000


def pack(items):
    rows = [json.dumps(item).encode() for item in items]
    ends = torch.tensor([len(row) for row in rows]).cumsum(0)
    return torch.frombuffer(bytearray(b"".join(rows)), dtype=torch.uint8), ends


class Annotations(Dataset):
    def __init__(self, lines):
        self.packed, self.ends = pack(json.loads(line) for line in lines)

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, index):
        start = int(self.ends[index - 1]) if index else 0
        item = json.loads(bytes(self.packed[start : int(self.ends[index])].tolist()))
        return torch.tensor(item["label"])


def main():
    lines = [json.dumps({"name": f"image {i}.png", "label": i % 10}) for i in range(ITEMS)]
    loader = DataLoader(Annotations(lines), batch_size=BATCH, shuffle=True, num_workers=2)
    total = 0
    for _, labels in zip(range(STEPS), loader):
        total += int(labels.sum())
    print(f"total {total}")


if __name__ == "__main__":
    main()
