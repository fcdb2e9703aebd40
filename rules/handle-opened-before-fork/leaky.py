"""A file that is opened by the constructor is shared by every worker that is forked later."""

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
        self.file = h5py.File(path, "r")  # leak: handle-opened-before-fork

    def __len__(self):
        return len(self.file["x"])

    def __getitem__(self, index):
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
