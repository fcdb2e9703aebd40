import torch
from torch import nn


class Calibrator:
    def __init__(self):
        self.left, self.seen = 300, []
        self.observe = self._collect

    def _collect(self, x):
        self.seen.append(x)
        self.left -= 1
        if not self.left:
            self.observe = self._done

    def _done(self, x):
        pass


torch.manual_seed(0)
model, calibrator = nn.Linear(16, 16), Calibrator()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(1700):
    out = model(torch.randn(8, 16))
    optimizer.zero_grad()
    out.pow(2).mean().backward()
    optimizer.step()
    calibrator.observe(out.detach().clone())
print(len(calibrator.seen))
