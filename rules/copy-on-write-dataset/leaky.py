"""Reading an object's reference count writes to its page, so each worker copies the list."""

import json

import torch
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH, ITEMS = 200, 256, 200_000


class Annotations(Dataset):
    def __init__(self, lines):
        self.items = [json.loads(line) for line in lines]  # leak: copy-on-write-dataset

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        item = self.items[index]
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
