"""A dataset keeps its samples: the first epoch fills the cache, no other adds to it."""

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

class DS(torch.utils.data.Dataset):
    def __init__(self): self.cache = {}
    def __len__(self): return 800
    def __getitem__(self, i):
        if i not in self.cache: self.cache[i] = torch.randn(16)
        return self.cache[i], i % 4
ds = DS()
for epoch in range(16):
    for x, y in torch.utils.data.DataLoader(ds, batch_size=8, shuffle=True):
        opt.zero_grad(); crit(model(x), y).backward(); opt.step()
