"""Results are awaited for 800 steps, and taken out of a set by the callback of each."""

from collections import deque
from concurrent.futures import Future

import torch

LAG = 800

torch.manual_seed(0)
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
pending: set[Future] = set()
arrivals: deque[tuple[int, Future]] = deque()

for step in range(2400):
    out = model(torch.randn(32, 16))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    result: Future = Future()
    result.inputs = out.detach()
    result.add_done_callback(pending.discard)
    pending.add(result)
    arrivals.append((step + LAG, result))
    while arrivals and arrivals[0][0] <= step:
        arrivals.popleft()[1].set_result(None)
print(len(pending))
