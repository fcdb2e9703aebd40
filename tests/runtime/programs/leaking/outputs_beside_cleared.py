"""The outputs of each evaluation stay; those of the training beside them are cleared each epoch."""

# kind = "tensor"
# holder = "attribute `Outputs.validation`"
# per_step = 0.3333

import torch
from torch import nn


class Outputs:
    def __init__(self):
        self.training, self.validation = [], []


torch.manual_seed(0)
model, outputs = nn.Linear(16, 4), Outputs()
optimizer = torch.optim.Adam(model.parameters())
data = torch.randn(480, 16)
for epoch in range(60):
    for indices in torch.randperm(480).split(16):  # whose tuple the loop alone holds
        output = model(data[indices])
        outputs.training.append(output.detach())
        optimizer.zero_grad()
        output.pow(2).mean().backward()
        optimizer.step()
    outputs.training.clear()
    with torch.no_grad():
        for batch in data.split(48):
            outputs.validation.append(model(batch))  # leak
    print(epoch, torch.cat(outputs.validation).mean().item())
