"""The training loop is a coroutine."""

# kind = "graph"
# holder = "local `total`"
# per_step = 8

import torch
from torch import nn

torch.manual_seed(0)


import asyncio


async def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    total = 0
    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        total = total + loss  # leak
        await asyncio.sleep(0)
    print(float(total))


asyncio.run(main())
