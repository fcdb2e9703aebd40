"""Batches from forked and from spawned workers, drawn at random in each."""

import hashlib
import random
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Noise(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        total = 0.0
        for _ in range(3):
            total += random.random()
        return torch.randn(16) + total + get_worker_info().id


def main():
    torch.manual_seed(0)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []
    for method in ("fork", "spawn"):
        loader = DataLoader(
            Noise(), batch_size=8, shuffle=True, num_workers=1, multiprocessing_context=method
        )
        for batch in loader:
            loss = model(batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(loss)
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":  # ended halfway, CPython warns, watched or not
            thread.join()
    weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
    print(hashlib.sha256(weights).hexdigest(), sum(map(float, kept)), torch.rand(1).item())


if __name__ == "__main__":
    main()
