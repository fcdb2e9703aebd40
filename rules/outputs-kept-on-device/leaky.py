"""Evaluation keeps every output where the model runs, until the epoch ends."""

import torch
from torch import nn

STEPS = 400


@torch.no_grad()
def evaluate(model, batches):
    outputs = []
    for batch in batches:
        outputs.append(model(batch))  # leak: outputs-kept-on-device
    return torch.cat(outputs)


def main():
    model = nn.Linear(16, 512)
    batches = (torch.ones(4, 16) for _ in range(STEPS))
    print(f"outputs {tuple(evaluate(model, batches).shape)}")


if __name__ == "__main__":
    main()
