"""One handler is added before the loop."""

import logging
import os
import tempfile

import torch
from torch import nn

STEPS = 300


def main():
    logger = logging.getLogger("training")
    logger.propagate = False
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.txt")
        logger.addHandler(logging.FileHandler(path))
        for step in range(STEPS):
            loss = model(torch.ones(4, 16)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    print(f"handlers {len(logger.handlers)}")


if __name__ == "__main__":
    main()
