"""Objects whose class has made `__dict__` something else, which says who asks for it."""

import torch

asked = 0


class Proxy:
    @property
    def __dict__(self):
        global asked
        asked += 1
        return {}


torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for _ in range(200):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    proxy = Proxy()
    proxy.loss = loss
    kept.append(proxy)
print("asked", asked, len(kept), loss.item())
