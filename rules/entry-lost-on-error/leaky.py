"""A pending entry is popped when the work succeeds; when it raises, it stays."""

import torch

STEPS = 700
_pending = {}


def work(handle):
    if handle % 2:
        raise RuntimeError("the peer is gone")


def wait(handle):
    try:
        work(handle)
        return _pending.pop(handle)  # leak: entry-lost-on-error
    except RuntimeError:
        return None


def main():
    for step in range(STEPS):
        _pending[step] = torch.ones(2048)
        wait(step)
    print(f"pending {len(_pending)}")


if __name__ == "__main__":
    main()
