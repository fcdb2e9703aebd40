import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(3))
optimizer = torch.optim.AdamW(blocks.parameters(), lr=1e-3)
for step in range(1100):
    x = torch.randn(8, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        loss = x.float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
