"""A log of text that is extended: one string, which no collector tracks."""

# kind = "object"
# holder = "attribute `Log.text`"
# per_step = 5200
# unit = "B"

import torch
from torch import nn

torch.manual_seed(0)


class Log:
    def __init__(self):
        self.text = ""

    def write(self, line):
        self.text += line  # leak


log = Log()
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(600):
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.write(f"{step:5}: {float(loss):9.6f}".ljust(5199) + "\n")
print(len(log.text))
