"""Tasks of asyncio that wait for ever, each with a tensor among its locals."""

# kind = "tensor"
# holder = "local `metrics`"
# per_step = 1
# unit = ""

import asyncio

import torch
from torch import nn

torch.manual_seed(0)


async def upload(done, metrics):
    await done.wait()
    print(len(metrics))


async def main():
    done = asyncio.Event()
    model = nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(600):
        loss = model(torch.randn(16, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gradients = model.weight.grad.clone()  # leak
        asyncio.create_task(upload(done, gradients))
        await asyncio.sleep(0)


asyncio.run(main())
