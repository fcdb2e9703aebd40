import random
from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
memory = deque([], maxlen=700)
state = torch.randn(4)
for step in range(2000):
    following = torch.randn(4)
    memory.append((state, torch.tensor(random.randrange(2)), following, torch.tensor(1.0)))
    state = following
    if len(memory) < 32:
        continue
    states, actions, nexts, rewards = map(torch.stack, zip(*random.sample(memory, 32)))
    value = policy(states).gather(1, actions[:, None])[:, 0]
    with torch.no_grad():
        goal = rewards + 0.9 * target(nexts).max(1).values
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), policy.parameters()):
            slow.lerp_(fast, 0.01)
