"""A replay memory whose limit is odd, and to which two are added at once."""

# kind = "tensor"
# holder = "Memory.rows"
# per_step = 2

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


class Memory:
    def __init__(self, capacity):
        self.capacity, self.rows = capacity, []

    def add(self, state, action, after):
        if len(self.rows) == self.capacity:
            del self.rows[:2]
        mirrored = (-state, 1 - action, after)
        self.rows.extend(((state, action, after), mirrored))  # leak


def main():
    policy = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters())
    memory, state = Memory(301), torch.randn(10)
    for _ in range(900):
        after = 0.9 * state + 0.2 * torch.randn(10)
        action = random.randrange(2)
        memory.add(state, action, after)
        state = after
        states, actions, _ = zip(*random.choices(memory.rows, k=8))
        chosen = policy(torch.stack(states)).gather(1, torch.tensor(actions)[:, None])
        optimizer.zero_grad()
        chosen.pow(2).mean().backward()
        optimizer.step()


main()
