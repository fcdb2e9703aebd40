"""The losses of each epoch are released at its end, beside a replay buffer that is not full yet."""

from collections import deque

import torch

torch.manual_seed(0)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
losses: list[torch.Tensor] = []
replay: deque[torch.Tensor] = deque(maxlen=20_000)

for epoch in range(16):
    for _ in range(100):
        states = torch.randn(16, 16)
        loss = model(states).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        replay.extend(state.clone() for state in states[:4])
        losses.append(loss.detach())
    print(torch.stack(losses).mean().item() < 10, len(replay))
    losses = []
