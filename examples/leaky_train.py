"""Train a small classifier and keep a running loss: a leak that every tutorial has had once.

leakcheck check examples/leaky_train.py
leakcheck run examples/leaky_train.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(epochs: int = 40) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(1024, 20), torch.randint(0, 3, (1024,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    total_loss = 0.0
    for epoch in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            total_loss += loss  # keeps the autograd graph of every step
        print(f"epoch {epoch}: mean loss {total_loss / (len(loader) * (epoch + 1)):.4f}")


if __name__ == "__main__":
    main()
