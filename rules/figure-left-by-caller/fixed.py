"""A helper draws the losses of each epoch; whoever calls it saves the figure and leaves it open."""

import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import torch

EPOCHS = 250


def draw(losses):
    figure, axes = plt.subplots(figsize=(1, 1))
    axes.plot(losses)
    return figure


def report(folder, epoch, losses):
    figure = draw(losses)
    figure.savefig(Path(folder) / f"{epoch}.png", dpi=10)
    plt.close(figure)


def main(folder):
    for epoch in range(EPOCHS):
        report(folder, epoch, torch.rand(8).tolist())
    print(f"{len(plt.get_fignums())} figures")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
