"""The forward pass leaves its hidden layer on the module, and nobody looks at it."""

import torch
from torch import nn

STEPS = 60


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(64, 1024)
        self.decoder = nn.Linear(1024, 10)

    def forward(self, x):
        hidden = torch.relu(self.encoder(x))
        self.hidden = hidden  # leak: output-never-read
        return self.decoder(hidden)


def main():
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = model(torch.randn(128, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
