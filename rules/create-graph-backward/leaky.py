import torch
from torch import nn

torch.manual_seed(0)


def penalty():
    critic = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    samples = torch.randn(4, 8, requires_grad=True)
    score = critic(samples).sum()
    score.backward(create_graph=True)  # leak: create-graph-backward
    gradient = samples.grad
    return (gradient.norm(2, dim=1) - 1).pow(2).mean().item()


for step in range(400):
    value = penalty()
print(f"penalty {value:.3f}")
