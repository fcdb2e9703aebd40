"""Reading an object's reference count writes to its page, so each worker copies the list."""

import json

import torch
from torch.utils.data import DataLoader, Dataset

STEPS = 400


class Annotations(Dataset):
    def __init__(self, lines):
        self.items = [json.loads(line) for line in lines]  # leak: copy-on-write-dataset

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        item = self.items[index]
        return torch.tensor(item["label"])


def main():
    lines = [json.dumps({"name": f"image {i}.png", "label": i % 10}) for i in range(STEPS)]
    total = 0
    for labels in DataLoader(Annotations(lines), batch_size=1):
        total += int(labels.sum())
    print(f"total {total}")


if __name__ == "__main__":
    main()
