"""A recurrent state carried from step to step, never detached."""

# kind = "graph"
# holder = "local `state`"
# per_step = 16

import torch
from torch import nn

torch.manual_seed(0)


def main():
    cell, head = nn.GRUCell(8, 16), nn.Linear(16, 1)
    state = torch.zeros(4, 16)
    for _ in range(400):
        state = cell(torch.randn(4, 8), state)  # leak
        score = head(state).mean().item()
    print(score)


main()
