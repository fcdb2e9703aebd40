"""What a kernel asks the allocator for beside its outputs, and gives back when it ends.

Fake tensors show outputs alone. The rules are torch's C++ sources, named at each, and fit what an
H200 was seen to ask for (tests/data/gpu/attention.json).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import torch

EFFICIENT = "_scaled_dot_product_efficient_attention"
CUDNN = "_scaled_dot_product_cudnn_attention"
_HALF = (torch.float16, torch.bfloat16)
_FLOAT_BYTES: Final = 4
_IN_REGISTERS: Final = 128  # the largest head of efficient attention that needs no accumulator
_QUERIES, _KEYS, _COLUMNS = 128, 64, 64  # the tiles of its backward
_TILE_HEADER_BYTES: Final = 16
_MOST_KEY_SPLITS: Final = 200  # over all batches and heads

Moment = Sequence[int]  # bytes of the requests that live at the same time


class _Shape(NamedTuple):
    """Of an attention: `rows` of queries over all batches and heads, one float each."""

    heads: int
    queries: int
    keys: int
    head_dim: int

    @property
    def row_bytes(self) -> int:
        return self.heads * self.queries * _FLOAT_BYTES


def moments(name: str, args: tuple[Any, ...]) -> Sequence[Moment]:
    """Return what an operator asks for, moment by moment, each given back before the next."""
    rule = RULES.get(name)
    return rule(args) if rule else ()


def on_the_host(name: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return which outputs are on the host, though a fake tensor has them on the device.

    Efficient attention keeps seed and offset there when it drops nothing out (attention.cu).
    """
    dropout = args[5] if len(args) > 5 else 0.0
    return (2, 3) if name == EFFICIENT and not dropout else ()


def _cudnn(args: tuple[Any, ...]) -> Sequence[Moment]:
    return [[512]]


def _cudnn_backward(args: tuple[Any, ...]) -> Sequence[Moment]:
    """The gradient of the queries and a sum for each row, in float32; MHA.cpp copies `grad`."""
    grad, query, out = args[0], args[1], args[4]
    copied = [] if grad.stride() == out.stride() else [_bytes_of(grad)]
    shape = _shape(query, args[2])
    return [[*copied, query.numel() * _FLOAT_BYTES + shape.row_bytes + 512]]


def _efficient(args: tuple[Any, ...]) -> Sequence[Moment]:
    """A float32 accumulator, where the output is half and a head too large for registers."""
    value = args[2]
    if value.dtype not in _HALF or value.size(-1) <= _IN_REGISTERS:
        return ()
    query = args[0]
    return [[query.numel() // query.size(-1) * value.size(-1) * _FLOAT_BYTES]]


def _efficient_backward(args: tuple[Any, ...]) -> Sequence[Moment]:
    """attention_backward.cu, and the workspace of kernel_backward.h.

    float32 multiplies `grad` and the output outside the kernel; half accumulates in the workspace.
    """
    grad, query, key = args[:3]
    copied = [] if grad.transpose(1, 2).is_contiguous() else [_bytes_of(grad)]
    shape = _shape(query, key)
    half = query.dtype in _HALF
    workspace = shape.heads * _tiles_bytes(shape)
    if half and shape.head_dim > _IN_REGISTERS:
        workspace += shape.heads * 2 * _key_bytes(shape)
    kernel = [*copied, shape.row_bytes, workspace]
    if half:
        return [kernel]
    return [[*copied, _bytes_of(grad), shape.row_bytes, shape.row_bytes], kernel]


def _tiles_bytes(shape: _Shape) -> int:
    """Of one head: the gradient of the queries, in tiles that are locked and counted."""
    tiles = _over(shape.queries, _QUERIES) * _over(shape.head_dim, _COLUMNS)
    return tiles * (_TILE_HEADER_BYTES + _QUERIES * _COLUMNS * _FLOAT_BYTES)


def _key_bytes(shape: _Shape) -> int:
    """Of one head: the gradient of the keys, or of the values, for each split of the keys."""
    splits = max(1, min(_over(shape.keys, _KEYS), _MOST_KEY_SPLITS // shape.heads))
    columns = _over(shape.head_dim, _QUERIES) * _QUERIES
    return splits * _KEYS * columns * _FLOAT_BYTES


def _shape(query: torch.Tensor, key: torch.Tensor) -> _Shape:
    batch, heads, queries, head_dim = query.shape
    return _Shape(batch * heads, queries, key.size(2), head_dim)


def _over(size: int, tile: int) -> int:
    return -(-size // tile)


def _bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


RULES: dict[str, Callable[[tuple[Any, ...]], Sequence[Moment]]] = {
    CUDNN: _cudnn,
    f"{CUDNN}_backward": _cudnn_backward,
    EFFICIENT: _efficient,
    f"{EFFICIENT}_backward": _efficient_backward,
}
