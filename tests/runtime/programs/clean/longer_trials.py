"""Each step plays a trial, of which it keeps what was seen in a new list; trials grow longer.

The policy goes on for a while longer after every tenth; what a trial was like before is gone.
"""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.01)


class Trial:
    def __init__(self):
        self.seen, self.rewards = [], []

    def play(self, length):
        self.seen = [torch.randn(16) for _ in range(length)]
        self.rewards = [torch.ones(1) for _ in range(length)]
        return torch.stack(self.seen), torch.cat(self.rewards)


def main():
    trial = Trial()
    for step in range(400):
        seen, rewards = trial.play(20 + min(step, 250))
        loss = (net(seen).squeeze(-1) - rewards).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("done", len(trial.seen))


main()
