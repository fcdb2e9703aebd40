import torch

torch.manual_seed(0)
weight = torch.randn(12, 12, requires_grad=True)
for episode in range(150):
    state = torch.randn(4, 12)
    cost = 0
    for t in range(120):
        state = torch.tanh(state @ weight)
        cost = cost + state.pow(2).mean()
    (gradient,) = torch.autograd.grad(cost, weight)
    with torch.no_grad():
        weight -= 0.01 * gradient
