"""A memory with a limit keeps views, and sampled ones are in a local until the next step."""

import random
from collections import deque, namedtuple

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
Move = namedtuple("Move", "state action reward")


class Memory:
    def __init__(self, size):
        self.moves = deque([], maxlen=size)

    def put(self, *parts):
        self.moves.append(Move(*parts))


policy = nn.Linear(6, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
memory = Memory(500)


def improve():
    batch = Move(*zip(*random.sample(memory.moves, min(len(memory.moves), 24))))
    value = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    loss = (value - torch.cat(batch.reward)[:, None]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for step in range(1500):
    state = torch.randn(1, 6)
    with torch.no_grad():
        action = policy(state).max(1)[1].view(1, 1)
    memory.put(state, action, torch.ones(1))
    improve()
