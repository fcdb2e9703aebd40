"""A pool of past outputs takes in every second one though it is full: `or` where `and` was meant."""

# kind = "tensor"
# holder = "attribute `Pool.kept`"
# per_step = 0.5

import torch

torch.manual_seed(0)


class Pool:
    def __init__(self, most):
        self.most = most
        self.kept = []
        self.seen = 0

    def swap(self, output):
        self.seen += 1
        if len(self.kept) < self.most or self.seen % 2 == 0:
            self.kept.append(output)  # leak
            return output
        old = self.kept[self.seen % self.most]
        self.kept[self.seen % self.most] = output
        return old


model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
pool = Pool(20)
for step in range(900):
    output = model(torch.randn(4, 256))
    loss = (output - pool.swap(output.detach())).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(len(pool.kept) > 20)
