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
        total_loss = total_loss + criterion(model(inputs), labels)  # leak: epoch-long-graph
    total_loss.backward()
    optimizer.step()
    return total_loss.item()


loader = batches * 20
print(f"loss of the epoch {run_epoch(loader):.3f}")
