"""The handler only notes the failure; the retry starts when the failed attempt is gone."""

import torch

STEPS = 400


def attempt(batch, scratch):
    work = torch.ones(4096)
    return (batch @ scratch).sum() + work.sum()


def train_step(batch, retry=True):
    workspace = torch.ones(4096)
    failed = False
    try:
        return attempt(batch, workspace)
    except RuntimeError as error:
        if "out of memory" not in str(error) and "size mismatch" not in str(error):
            raise
        failed = True
    if failed and retry:
        return train_step(batch[: len(batch) // 2], retry=False)
    return workspace.sum()


def main():
    total = 0.0
    for step in range(STEPS):
        total += float(train_step(torch.ones(8, 16)))
    print(f"total {total:.1f}")


if __name__ == "__main__":
    main()
