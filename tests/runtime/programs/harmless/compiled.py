"""A compiled model and a compiled step, with the graph kept on purpose."""

import hashlib

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


@torch.compile(backend="eager", fullgraph=True)
def penalty(outputs, times):
    total = outputs.pow(2).mean()
    for _ in range(times):
        total = total + outputs.abs().mean()
    return total


kept = []
for _ in range(150):
    loss = penalty(compiled(torch.randn(8, 16)), 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss)
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
print(hashlib.sha256(weights).hexdigest(), sum(each.item() for each in kept), torch.rand(1).item())
print(sum(torch._dynamo.utils.counters["graph_break"].values()))
print(dict(torch._dynamo.utils.counters["stats"]))
