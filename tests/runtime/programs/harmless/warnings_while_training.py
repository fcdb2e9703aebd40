"""Every warning is an error while tensors of every kind are alive."""

import hashlib
import warnings

import torch
from torch import nn

warnings.simplefilter("error")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 50)
kept, inner = [], []
for _ in range(150):
    hidden = model[0](torch.randn(8, 16))
    loss = model[2](model[1](hidden)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    kept.append(loss)
    inner.append(hidden)
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
print(hashlib.sha256(weights).hexdigest(), sum(each.item() for each in kept), torch.rand(1).item())
warnings.simplefilter("default")
print(inner[0].grad)
