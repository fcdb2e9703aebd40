"""Hidden states kept; no optimizer, and inside each step a loop over the parameters."""

# kind = "graph"
# holder = "global `history`"
# per_step = 7

import torch
from torch import nn

torch.manual_seed(0)
vocabulary = {}
for word in range(30000):
    vocabulary.setdefault(word % 997, len(vocabulary))
embedding, cell, head = nn.Embedding(997, 8), nn.RNNCell(8, 8), nn.Linear(8, 997)
parameters = [*embedding.parameters(), *cell.parameters(), *head.parameters()]
history = []


def train(lr):
    state = torch.zeros(4, 8)
    for _ in range(0, 64 * 35, 35):
        words = torch.randint(0, 997, (4,))
        state = cell(embedding(words), state.detach())
        loss = nn.functional.cross_entropy(head(state), words)
        loss.backward()
        for parameter in parameters:
            parameter.data.add_(parameter.grad, alpha=-lr)
            parameter.grad = None
        history.append(state)  # leak


for epoch in range(20):
    train(0.1)
