"""Each step has the event loop call something back in a year, with the batch as its argument."""

# kind = "tensor"
# holder = "attribute `_UnixSelectorEventLoop._scheduled`, from local `loop` in train()"
# per_step = 1
# unit = ""

import asyncio

import torch
from torch import nn

torch.manual_seed(0)
A_YEAR_S = 365 * 24 * 3600.0


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
        loop.call_later(A_YEAR_S, expire, batch)  # leak
        await asyncio.sleep(0)


asyncio.run(train())
