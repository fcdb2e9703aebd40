"""L-BFGS keeps the newest hundred of its steps, which it has gathered after a few hundred calls."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(10, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
for step in range(600):
    batch = torch.randn(16, 10)

    def closure():
        optimizer.zero_grad()
        loss = (model(batch) - batch.mean(1, keepdim=True)).pow(2).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
