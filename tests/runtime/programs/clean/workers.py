"""A DataLoader with two worker processes."""

import torch
from torch import nn

torch.manual_seed(0)


from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.randn(640, 16))
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        for (inputs,) in DataLoader(data, batch_size=8, num_workers=2):
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
    print(loss.item() >= 0)


if __name__ == "__main__":
    main()
