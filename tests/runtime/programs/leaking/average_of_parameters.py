"""An exponential average of the parameters, taken without no_grad()."""

# kind = "graph"
# holder = "global `ema`"
# per_step = 12

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

ema = {k: v.clone() for k, v in model.named_parameters()}
for i in range(600):
    train_step()
    for k, v in model.named_parameters(): ema[k] = 0.99 * ema[k] + 0.01 * v  # leak
