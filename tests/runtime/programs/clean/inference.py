import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
correct = 0
with torch.inference_mode():
    for batch in range(1500):
        correct += (model(torch.randn(8, 32)).argmax(1) == 3).sum()
print(int(correct))
