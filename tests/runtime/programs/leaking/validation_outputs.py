"""One output a validation is kept: it grows in steps, once in 25."""

# kind = "graph"
# holder = "global `outs`"
# per_step = 0.2

import torch, random
from torch import nn
torch.manual_seed(0); random.seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
crit = nn.CrossEntropyLoss()
def batch(n=8): return torch.randn(n, 16), torch.randint(0, 4, (n,))
def train_step(n=8):
    x, y = batch(n)
    opt.zero_grad(); out = model(x); loss = crit(out, y); loss.backward(); opt.step()
    return out, loss

outs = []
for epoch in range(60):
    for i in range(25): train_step()
    outs.append(model(torch.randn(32, 16)))  # leak
