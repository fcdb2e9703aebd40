"""The batch keeps a bound method of its own, and so itself."""

import torch

STEPS = 400


class Batch:
    def __init__(self, rows):
        self.rows = rows
        self.check = None

    def validate(self):
        if self.check is None:
            self.check = self.check_rows  # leak: method-kept-on-self
        return self.check()

    def check_rows(self):
        return bool(self.rows.isfinite().all())


def main():
    good = 0
    for step in range(STEPS):
        good += Batch(torch.randn(4, 256)).validate()
    print(f"{good} good batches")


if __name__ == "__main__":
    main()
