"""A cache that drops its oldest entries beyond a budget of bytes."""

import random, os, torch, numpy as np
from torch import nn
from collections import OrderedDict


class ByteLRU:
    def __init__(self, budget):
        self.b, self.used, self.d = budget, 0, OrderedDict()

    def get(self, k, make):
        if k in self.d:
            self.d.move_to_end(k)
            return self.d[k]
        v = make()
        self.d[k] = v
        self.used += len(v)
        while self.used > self.b:
            _, o = self.d.popitem(last=False)
            self.used -= len(o)
        return v


c = ByteLRU(4 << 20)
net = nn.Linear(64, 2)
opt = torch.optim.SGD(net.parameters(), 0.01)
for step in range(1800):
    raw = c.get(random.randrange(3000), lambda: os.urandom(random.randrange(4000, 20000)))
    x = torch.tensor(np.frombuffer(raw, dtype=np.uint8, count=1024).astype("f4")).view(16, 64)
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
