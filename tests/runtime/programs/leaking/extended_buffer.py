"""One tensor, extended by a row at every step: no tensor more, but a larger one."""

# kind = "tensor"
# holder = "global `buf`"
# per_step = 128
# unit = "B"

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

buf = torch.empty(0, 4)
for i in range(1500):
    out, loss = train_step()
    buf = torch.cat([buf, out.detach()])  # leak
