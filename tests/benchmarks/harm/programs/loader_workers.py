"""A DataLoader with workers and a thread that collates what it gives; losses are kept."""

import queue
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 1200

    def __getitem__(self, index):
        return torch.tensor([(index + k) % 9 / 9 for k in range(10)]), index % 2


def collate_on(loader, batches, failed):
    try:
        for epoch in range(2):
            for rows, labels in loader:
                parts = tuple(part for part in zip(rows.unbind(), labels.tolist(), strict=True))
                batches.put((torch.stack([row for row, _ in parts]), [n for _, n in parts], epoch))
    except BaseException as error:
        failed.append(repr(error))
    finally:
        batches.put(None)


def main():
    torch.manual_seed(0)
    batches, failed, losses, counts = queue.Queue(4), [], [], [0, 0]
    loader = DataLoader(Rows(), batch_size=8, num_workers=2)
    model = nn.Linear(10, 2)  # before the loader draws a random number, too
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    thread = threading.Thread(target=collate_on, args=(loader, batches, failed))
    thread.start()
    while (batch := batches.get()) is not None:
        rows, labels, epoch = batch
        loss = nn.functional.cross_entropy(model(rows), torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        counts[epoch] += 1
    thread.join()
    print("batches", counts, "failed", failed, f"last loss {losses[-1].item():.6g}")


if __name__ == "__main__":
    main()
