"""Each shard is on disk, and in a list."""

import tempfile

import torch

STEPS = 200


def build(step):
    return torch.full((128, 128), float(step))


def main():
    kept = []
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            path = f"{folder}/{step % 8}.pt"
            shard = build(step)
            torch.save(shard, path)
            kept.append(shard)  # leak: kept-though-saved
    print(f"{len(kept)} shards")


if __name__ == "__main__":
    main()
