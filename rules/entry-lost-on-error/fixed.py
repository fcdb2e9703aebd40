"""The pending entry is taken out first, whatever becomes of the work."""

import torch

STEPS = 700
_pending = {}


def work(handle):
    if handle % 2:
        raise RuntimeError("the peer is gone")


def wait(handle):
    entry = _pending.pop(handle)
    try:
        work(handle)
        return entry
    except RuntimeError:
        return None


def main():
    for step in range(STEPS):
        _pending[step] = torch.ones(2048)
        wait(step)
    print(f"pending {len(_pending)}")


if __name__ == "__main__":
    main()
