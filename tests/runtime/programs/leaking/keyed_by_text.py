"""A cache by a key that is put together of epoch and step, and so is always new."""

# kind = "tensor"
# holder = "outputs"
# per_step = 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
outputs = {}
for epoch in range(8):
    for step in range(150):
        predicted = model(torch.randn(4, 16))
        loss = predicted.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs["epoch %d, step %d" % (epoch, step)] = predicted.detach().clone()  # leak
