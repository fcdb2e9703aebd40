import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
batches = [(torch.randn(8, 16), torch.randint(0, 4, (8,))) for _ in range(20)]


def run_epoch(loader):
    optimizer.zero_grad()
    total_loss = 0.0
    for inputs, labels in loader:
        loss = criterion(model(inputs), labels)
        loss.backward()
        total_loss += loss.item()
    optimizer.step()
    return total_loss


loader = batches * 20
print(f"loss of the epoch {run_epoch(loader):.3f}")
