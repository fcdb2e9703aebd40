import torch
from torch import nn


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


torch.manual_seed(0)
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
seen = {}
handle = model.register_forward_hook(lambda m, i, o: seen.update(last=o.detach().mean()))
for step in range(1100):
    out = Cube.apply(model(torch.randn(8, 8)))
    out.register_hook(lambda grad: grad.clamp(-1, 1))
    optimizer.zero_grad()
    out.mean().backward()
    optimizer.step()
handle.remove()
