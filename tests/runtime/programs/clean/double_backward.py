import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
for step in range(1100):
    x = torch.randn(8, 16, requires_grad=True)
    (gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    loss = (gradient.norm(dim=1) - 1).pow(2).mean() + critic(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
