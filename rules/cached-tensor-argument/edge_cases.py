"""Near misses are unmarked."""

import functools
from functools import lru_cache
from typing import Callable, Optional

import torch
from torch import Tensor, nn


@lru_cache(maxsize=32)
def mask(size: int, device: torch.device, dtype: torch.dtype):
    return torch.ones(size, device=device, dtype=dtype)


@lru_cache  # leak: cached-tensor-argument
def names(model: nn.Module):
    return [name for name, _ in model.named_parameters()]


@functools.cache  # leak: cached-tensor-argument
def total(x: Optional[Tensor] = None):
    return x.sum()


@functools.cache
def load(model: str):
    return model


@functools.cache  # leak: cached-tensor-argument
def untyped(model):
    return model.training


class Scorer:
    def __init__(self):
        @lru_cache  # leak: cached-tensor-argument
        def score(text):
            return self.table[text]

        self.score = score


@lru_cache(maxsize=None)  # leak: cached-tensor-argument
def arguments_of(function: Callable):
    return function.__code__.co_varnames


@lru_cache(maxsize=64)
def a_few_arguments_of(function: Callable):
    return function.__code__.co_varnames


@lru_cache(maxsize=None)
def sources_of(module):
    return open(module.__file__).read()  # of Python, as its file says


@lru_cache(maxsize=None)  # leak: cached-tensor-argument
def parameters_of(module):
    return list(module.parameters())
