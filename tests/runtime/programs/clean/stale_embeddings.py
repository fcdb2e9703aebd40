import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
NODES = 3000
features = torch.randn(NODES, 16)
encoder, head = nn.Linear(16, 64), nn.Linear(64, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
stale = {}
for step in range(1200):
    nodes = random.choices(range(NODES), k=32)  # fast at first: new ones come ever more rarely
    embeddings = encoder(features[nodes])
    for node, embedding in zip(nodes, embeddings.detach()):
        if node in stale:
            stale[node].copy_(embedding)
        else:
            stale[node] = embedding.clone()
    around = torch.stack([stale[node] for node in nodes])
    loss = head(embeddings + around).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
