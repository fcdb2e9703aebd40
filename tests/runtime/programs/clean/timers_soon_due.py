"""Each step has the event loop call something back in half a minute, with its batch."""

import asyncio

import torch
from torch import nn

torch.manual_seed(0)
SOON_S = 30.0

def expire(batch):
    print(len(batch))

async def train():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loop = asyncio.get_running_loop()
    for _ in range(400):
        batch = torch.randn(4, 8)
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
        loop.call_later(SOON_S, expire, batch)
        await asyncio.sleep(0)

asyncio.run(train())
