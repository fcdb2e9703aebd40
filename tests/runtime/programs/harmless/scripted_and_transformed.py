"""torch.jit, vmap, grad transforms, forward mode and anomaly mode in one loop."""

import hashlib
import warnings

import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vmap

warnings.filterwarnings("ignore", category=DeprecationWarning)
torch.manual_seed(0)


def smooth(x, times: int):
    for _ in range(times):
        x = x * 0.5 + 0.1
    return x


model = nn.Linear(16, 4)
scripted = torch.jit.script(smooth)
traced = torch.jit.trace(nn.Tanh(), torch.zeros(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def error(parameters, sample):
    return functional_call(model, parameters, (sample,)).pow(2).mean()


kept = []
for step in range(150):
    samples = torch.randn(8, 16)
    parameters = {name: each.detach() for name, each in model.named_parameters()}
    each_gradient = vmap(grad(error), in_dims=(None, 0))(parameters, samples)
    _, forward = jvp(torch.sin, (samples,), (torch.ones_like(samples),))
    with torch.autograd.set_detect_anomaly(step % 50 == 0, check_nan=False):
        loss = traced(scripted(model(samples), 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
    model.weight.grad += each_gradient["weight"].mean(0) * forward.mean()
    optimizer.step()
    kept.append(loss)
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
print(hashlib.sha256(weights).hexdigest(), sum(each.item() for each in kept), torch.rand(1).item())
