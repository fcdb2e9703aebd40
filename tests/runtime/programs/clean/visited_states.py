"""A table that makes a row for each state when it is first visited; there are 600 states."""

import random, torch
from torch import nn
from collections import defaultdict

Q = defaultdict(lambda: torch.zeros(8))
net = nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), 0.01)
for step in range(1800):
    s = (random.randrange(30), random.randrange(20))
    f = Q[s]
    f += 0.1
    loss = net(torch.stack([f, Q[(s[0], 0)]])).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
