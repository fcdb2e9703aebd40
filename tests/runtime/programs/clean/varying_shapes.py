import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
embedding = nn.Embedding(100, 32)
rnn = nn.GRU(32, 48, batch_first=True)
head = nn.Linear(48, 100)
parameters = [*embedding.parameters(), *rnn.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
for step in range(1200):
    length, batch = random.randint(3, 40), random.randint(1, 12)
    tokens = torch.randint(0, 100, (batch, length + 1))
    out, _ = rnn(embedding(tokens[:, :-1]))
    loss = nn.functional.cross_entropy(head(out).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
