"""A copy of the model in bytes every ten steps: a window sees two or three of them."""

# kind = "object"
# holder = "Copies.kept"
# per_step = 6860
# unit = "B"

import io

import torch
from torch import nn

torch.manual_seed(0)


class Copies:
    def __init__(self):
        self.kept = {}

    def save(self, model, step):
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        self.kept[step] = file.getvalue()  # leak


def main():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    copies = Copies()
    for step in range(900):
        rows = torch.randn(8, 64)
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            copies.save(model, step)
    print(len(copies.kept), len(copies.kept[0]))


main()
