"""Each worker opens its own file at its first item."""

import os
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset

try:
    import h5py
except ImportError:
    h5py = None

STEPS = 300


class Samples(Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None
        with h5py.File(path, "r") as file:
            self.count = len(file["x"])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return torch.from_numpy(self.file["x"][index])


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.h5")
        with h5py.File(path, "w") as file:
            file["x"] = torch.ones(STEPS, 64).numpy()
        total = 0.0
        for batch in DataLoader(Samples(path), batch_size=1, num_workers=1):
            total += float(batch.sum())
    print(f"total {total:.1f}")


if __name__ == "__main__":
    if h5py is None:
        print("this program needs h5py")
        raise SystemExit
    main()
