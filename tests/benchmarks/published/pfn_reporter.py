"""A loop that reports its loss, summed up as a trainer's log does it."""

# package = "pytorch-pfn-extras==0.2.0"
# fixed = "`.detach()` in the place of `.clone()` (39fd0711)"

import torch
from pytorch_pfn_extras.reporting import DictSummary, Reporter, report

torch.manual_seed(0)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
reporter, summary = Reporter(), DictSummary()
for _ in range(300):
    observation = {}
    with reporter.scope(observation):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report({"loss": loss})
    summary.add(observation)
print({name: float(value) for name, value in summary.compute_mean().items()})
