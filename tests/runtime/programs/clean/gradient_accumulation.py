import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(32, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
history = {"loss": [], "norm": []}
for step in range(1200):
    optimizer.zero_grad()
    total = 0.0
    for micro in range(4):
        loss = model(torch.randn(8, 32)).pow(2).mean() / 4
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    history["loss"].append(total)
    history["norm"].append(float(norm))
