"""Tensors that see every operation on them, and modes that see all of them: none is ours."""

import hashlib
from collections import Counter

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

torch.manual_seed(0)
seen = Counter()


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen[f"function {getattr(func, '__name__', func)}"] += 1
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        seen[f"dispatch {func}"] += 1
        bare = tree_map(lambda each: each.inner if isinstance(each, Wrapped) else each, args)
        made = func(*bare, **(kwargs or {}))
        return tree_map(
            lambda each: Wrapped(each) if isinstance(each, torch.Tensor) else each, made
        )


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen[f"mode {func}"] += 1
        return func(*args, **(kwargs or {}))


class Calls(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen["calls"] += 1
        return func(*args, **(kwargs or {}))


model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
kept, named, wrapped = [], [], []
with Operations(), Calls():
    for _ in range(150):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(loss)
        named.append(torch.ones(3).as_subclass(Named) * 2)
        wrapped.append(Wrapped(torch.ones(3)) + 1)
print(sorted(seen.items()))
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
print(hashlib.sha256(weights).hexdigest(), sum(each.item() for each in kept), torch.rand(1).item())
