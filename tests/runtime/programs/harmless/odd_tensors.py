"""Tensors without storage, shape or values: fake, meta, sparse, nested, lazy, freed, escaped."""

import hashlib
import warnings

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import grad

warnings.filterwarnings("ignore", message=".*(nested|sparse).*", category=UserWarning)
torch.manual_seed(0)
model = nn.Linear(16, 4)
lazy = nn.LazyLinear(4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
fake_mode, escaped = FakeTensorMode(), []


def leaky(x):
    escaped.append(x)
    return x.sum()


kept, odd = [], []
for step in range(150):
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss)
    freed = torch.ones(100)
    freed.untyped_storage().resize_(0)
    grad(leaky)(torch.ones(3))
    with fake_mode:
        odd.append(torch.empty(3, 3))
    odd.append(torch.empty(3, 3, device="meta"))
    odd.append(torch.eye(3).to_sparse())
    odd.append(torch.eye(3).to_sparse_csr())
    odd.append(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged))
    odd.append(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))
    odd.append(torch.zeros(0))
    odd.append(freed)
    with torch.inference_mode():
        odd.append(torch.ones(2))
print(len(odd), len(escaped), lazy.weight.__class__.__name__)
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
print(hashlib.sha256(weights).hexdigest(), sum(each.item() for each in kept), torch.rand(1).item())
