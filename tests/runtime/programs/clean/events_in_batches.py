import torch
from torch import nn


class Events:
    """Summaries are written in batches of 80 steps; their losses keep the graph for as long."""

    def __init__(self):
        self.pending, self.calls, self.written = [], 0, 0.0

    def add(self, loss):
        self.pending.append(("loss", loss))
        self.calls += 1
        if self.calls % 80 == 0:
            self.flush()

    def flush(self):
        self.written += sum(loss.item() for _, loss in self.pending)
        self.pending.clear()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
events = Events()
for step in range(1000):
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    events.add(loss)
