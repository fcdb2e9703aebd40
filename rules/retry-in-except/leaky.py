"""Inside `except` the traceback still owns the failed attempt, so the retry pays for both."""

import torch

STEPS = 400


def attempt(batch, scratch):
    work = torch.ones(4096)
    return (batch @ scratch).sum() + work.sum()


def train_step(batch, retry=True):
    workspace = torch.ones(4096)
    try:
        return attempt(batch, workspace)
    except RuntimeError as error:
        if "out of memory" not in str(error) and "size mismatch" not in str(error):
            raise
        if not retry:
            return workspace.sum()
        return train_step(batch[: len(batch) // 2], retry=False)  # leak: retry-in-except


def main():
    total = 0.0
    for step in range(STEPS):
        total += float(train_step(torch.ones(8, 16)))
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
