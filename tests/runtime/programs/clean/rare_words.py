"""A vector for each word when it is first read: new ones come ever more rarely."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
WORDS = [f"word {rank}" for rank in range(8000)]
SHARES = [1 / (rank + 1) for rank in range(8000)]

model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
vectors = {}
for _ in range(2500):
    line = random.choices(WORDS, SHARES, k=6)
    for word in line:
        if word not in vectors:
            vectors[word] = torch.randn(16)
    loss = model(torch.stack([vectors[word] for word in line])).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
