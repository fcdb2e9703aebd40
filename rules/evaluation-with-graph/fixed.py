import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
loader = [(torch.randn(8, 16), torch.randint(0, 4, (8,))) for _ in range(400)]


def evaluate(model, loader):
    model.eval()
    total_loss = 0.0
    with torch.no_grad():
        for inputs, labels in loader:
            total_loss += criterion(model(inputs), labels)
    return float(total_loss) / len(loader)


print(f"mean loss {evaluate(model, loader):.3f}")
