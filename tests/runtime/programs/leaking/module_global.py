"""Everything at module level, as in a notebook."""

# kind = "graph"
# holder = "global `running`"
# per_step = 7

import torch
from torch import nn

torch.manual_seed(0)


model = nn.Linear(16, 4)
optimizer = torch.optim.Adam(model.parameters())
running = torch.zeros(())
for step in range(400):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 16)).square().mean()
    loss.backward()
    optimizer.step()
    running = running + loss * 0.5 + 1.0  # leak
print(float(running))
