"""Meta-learning that keeps the adapted weights of every task, by a number that only goes up."""

# kind = "graph"
# holder = "attribute `Meta.adapted`"
# per_step = 4

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)


class Meta:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.001)
        self.adapted, self.seen = {}, 0

    def step(self):
        known = dict(self.net.named_parameters())
        x = torch.rand(10, 1)
        loss = functional_call(self.net, known, (x,)).square().mean()
        grads = torch.autograd.grad(loss, list(known.values()))
        fast = {name: p - 0.1 * g for (name, p), g in zip(known.items(), grads, strict=True)}
        self.adapted[self.seen] = fast  # leak
        self.seen += 1
        self.optimizer.zero_grad()
        functional_call(self.net, fast, (x,)).square().mean().backward()
        self.optimizer.step()


def main():
    meta = Meta()
    for _ in range(400):
        meta.step()
    print(meta.seen)


main()
