"""Boosting: every fifty steps another learner is trained and kept, as an ensemble does."""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    inputs, residual = torch.randn(256, 16), torch.randn(256, 1)
    learners = []
    for _ in range(20):
        learner = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
        optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
        for _ in range(50):
            optimizer.zero_grad()
            (learner(inputs) - residual).pow(2).mean().backward()
            optimizer.step()
        learners.append(learner)
        with torch.no_grad():
            residual = residual - 0.5 * learner(inputs)
    print(f"{sum(learner(inputs).sum().item() for learner in learners):.1f}")


main()
