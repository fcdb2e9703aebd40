"""Each training takes its log handler off again and closes it."""

import logging
import tempfile
from pathlib import Path

import torch

RUNS = 20
logger = logging.getLogger("training")


def train(path):
    handler = logging.FileHandler(path)
    logger.addHandler(handler)
    logger.warning("loss %.3f", torch.ones(2).sum().item())
    logger.removeHandler(handler)
    handler.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        for run in range(RUNS):
            train(Path(folder) / f"{run}.log")
    print(f"{RUNS} runs")


if __name__ == "__main__":
    main()
