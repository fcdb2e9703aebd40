"""One row of each batch is kept: a view, which keeps the whole batch."""

# kind = "tensor"
# holder = "local `examples`"
# per_step = 2

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    examples = []
    for _ in range(500):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        examples.append(inputs[0])  # leak
    print(len(examples))


main()
