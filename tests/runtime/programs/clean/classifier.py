"""Adam, a DataLoader, a running loss in numbers."""

import torch
from torch import nn

torch.manual_seed(0)


from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.randn(320, 16), torch.randint(0, 4, (320,)))
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters())
    total = 0.0
    for _ in range(20):
        for inputs, labels in DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
    print(f"{total:.2f}")


main()
