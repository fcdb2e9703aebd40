import torch

torch.manual_seed(0)
weight = torch.randn(20, requires_grad=True)
optimizer = torch.optim.LBFGS([weight], lr=0.1, history_size=20, max_iter=4)
data = torch.randn(64, 20)


def closure():
    optimizer.zero_grad()
    loss = (data @ weight).pow(2).mean() + (weight**4).sum()
    loss.backward()
    return loss


for step in range(1100):
    optimizer.step(closure)
