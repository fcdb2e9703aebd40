import torch
from torch import nn

torch.manual_seed(0)
cell = nn.LSTMCell(8, 16)
head = nn.Linear(16, 8)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
h, c = torch.zeros(4, 16), torch.zeros(4, 16)
data = torch.randn(8000, 4, 8)
for chunk in range(1100):
    h, c = h.detach(), c.detach()
    loss = 0
    for t in range(7):
        h, c = cell(data[chunk * 7 + t], (h, c))
        loss = loss + head(h).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
