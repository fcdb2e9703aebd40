"""A recurrent network begins each sequence with the state that the last one ended with."""

# kind = "graph"
# holder = "attribute `Recurrent.state`, from global `model`"
# per_step = 36

import torch
from torch import nn

torch.manual_seed(0)
TIMES = 6


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs, self.hidden = nn.Linear(4, 8), nn.Linear(8, 8)

    def forward(self, x, before):
        after = torch.tanh(self.inputs(x) + self.hidden(before))
        return after


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = Cell(), nn.Linear(8, 1)
        self.state = torch.zeros(8, 8)

    def forward(self, x):
        state = self.state
        states = []
        for time in range(TIMES):
            state = self.cell(x[:, time], state)
            states.append(state)
        self.state = state  # leak
        return self.out(torch.stack(states, 1))


model = Recurrent()
for _ in range(200):
    loss = model(torch.randn(8, TIMES, 4)).square().mean()
    model.zero_grad()
    loss.backward(retain_graph=True)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.data -= 0.01 * parameter.grad
