import torch
from torch import nn
from torch.nn import functional as F


class Contrast(nn.Module):
    def __init__(self, size=8192):
        super().__init__()
        self.encoder = nn.Linear(32, 128)
        self.queue, self.queued, self.size = [], 0, size

    def enqueue(self, keys):
        self.queue.append(keys)
        self.queued += len(keys)
        while self.queued > self.size:
            self.queued -= len(self.queue.pop(0))

    def forward(self, x):
        z = F.normalize(self.encoder(x), dim=1)
        others = z @ torch.cat([*self.queue, z.detach()]).T
        self.enqueue(z.detach())
        return others.logsumexp(1).mean()


torch.manual_seed(0)
model = Contrast()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(6):
    for _ in range(200):  # full after 256 steps, in the second epoch
        loss = model(torch.randn(32, 32))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
