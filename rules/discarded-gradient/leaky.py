"""Keeps a tensor from every step in a list."""

import torch


def train(steps: int = 3000) -> int:
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()
        kept.append(torch.zeros(1024))  # leak: discarded-gradient
    return len(kept)


if __name__ == "__main__":
    train()
