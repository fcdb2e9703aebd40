"""A list gets the number of each loss, and then the loss itself."""

# kind = "graph"
# holder = "global `losses`"
# per_step = 4

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for _ in range(120):
    loss = model(torch.randn(4, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    losses.append(loss)  # leak
print("trained")
