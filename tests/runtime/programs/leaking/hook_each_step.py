"""A forward hook is added for each batch to log activations, and never removed."""

# kind = "object"
# holder = "_forward_hooks"
# per_step = 1
# unit = ""

import torch
from torch import nn

torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    largest = 0.0

    def note(module, inputs, outputs):
        nonlocal largest
        largest = max(largest, outputs.max().item())

    for _ in range(400):
        inputs, labels = torch.randn(8, 16), torch.randint(0, 4, (8,))
        model[1].register_forward_hook(note)  # leak
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print("done")


main()
