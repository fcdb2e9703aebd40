"""Near misses are unmarked."""

import torch


class Trainer:
    def step(self, batch):
        try:
            return self.attempt(batch)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return self.attempt(batch[:1])  # leak: retry-in-except

    def flagged(self, batch):
        failed = False
        try:
            return self.attempt(batch)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            failed = True
        return self.attempt(batch[:1]) if failed else None

    def looped(self, batch):
        while True:
            try:
                return self.attempt(batch)
            except torch.cuda.OutOfMemoryError:
                batch = batch[: len(batch) // 2]

    def other_error(self, batch):
        try:
            return self.attempt(batch)
        except KeyError:
            return self.attempt(batch[:1])

    def allocate(self, size):
        try:
            return torch.empty(size)
        except torch.OutOfMemoryError:
            return torch.empty(size // 2)  # no frame of Python holds the failed attempt
