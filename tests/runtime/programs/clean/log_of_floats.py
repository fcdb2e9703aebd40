import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
log = {"loss": [], "weight": []}
for step in range(1300):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    log["loss"].append(loss.item())
    log["weight"].append(model.weight[0, 0].item())
