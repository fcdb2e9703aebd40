"""The forward pass adds each output to a list of the module, with its graph."""

import torch
from torch import nn

STEPS = 300


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)
        self.outputs = []

    def forward(self, x):
        out = torch.tanh(self.layer(x))
        self.outputs.append(out)  # leak: forward-keeps-outputs
        return out


def main():
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = model(torch.randn(8, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{len(model.outputs)} outputs, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
