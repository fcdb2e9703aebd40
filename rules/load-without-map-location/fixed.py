"""The checkpoint is read into host memory; load_state_dict copies it to the model."""

import io

import torch
from torch import nn

STEPS = 300


def restore(model, file):
    checkpoint = torch.load(file, map_location="cpu")
    model.load_state_dict(checkpoint["model"])


def main():
    model = nn.Linear(64, 64)
    file = io.BytesIO()
    torch.save({"model": model.state_dict()}, file)
    for step in range(STEPS):
        file.seek(0)
        restore(model, file)
    print("restored")


if __name__ == "__main__":
    main()
