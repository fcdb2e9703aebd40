"""An array of NumPy's that is copied into a longer one at each step."""

# kind = "object"
# holder = "class attribute `Stats.gradients`"
# per_step = 4096
# unit = "B"

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Stats:
    gradients = np.empty(0, dtype="f4")


model = nn.Linear(64, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(600):
    loss = model(torch.randn(8, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    Stats.gradients = np.append(Stats.gradients, model.weight.grad.numpy().ravel())  # leak
print(len(Stats.gradients))
