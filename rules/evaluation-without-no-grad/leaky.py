"""model.eval() switches dropout off, not gradients."""

import torch
from torch import nn

BATCHES = 20


def evaluate(model, batches):
    model.eval()
    correct = 0
    for x, y in batches:
        logits = model(x)  # leak: evaluation-without-no-grad
        correct += (logits.argmax(dim=1) == y).sum().item()
    return correct


def main():
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    batches = [(torch.randn(32, 64), torch.randint(8, (32,))) for _ in range(BATCHES)]
    print(f"{evaluate(model, batches)} right")


if __name__ == "__main__":
    main()
