"""Near misses are unmarked."""

import h5py
from torch.utils.data import DataLoader


class Samples:
    def __init__(self, path):
        self.file = h5py.File(path, "r")  # leak: handle-opened-before-fork

    def __getitem__(self, index):
        return self.file["samples"][index]

    def __len__(self):
        return 8


class Store:
    """A mapping is asked for its keys, and no loader reads it."""

    def __init__(self, path):
        self.file = h5py.File(path, "a")

    def __contains__(self, name):
        return name in self.file

    def __getitem__(self, name):
        return self.file[name]

    def __len__(self):
        return len(self.file)


class ReadAtOnce:
    """Only the constructor reads the file, so the workers do not."""

    def __init__(self, path):
        self.file = h5py.File(path, "r")
        self.samples = self.file["samples"][:]

    def __getitem__(self, index):
        return self.samples[index]

    def __len__(self):
        return len(self.samples)


loader = DataLoader(Samples("samples.h5"), num_workers=2)
