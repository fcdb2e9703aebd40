"""What a kernel asks the allocator for beside its outputs, and gives back when it ends.

Fake tensors show outputs alone. The rules are torch's C++ sources, named at each, and fit what an
H200 was seen to ask for (tests/data/gpu: attention.json, attention-by-kernel.json, scratch.json,
trace-native.json.gz).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import torch

from leakcheck.memory.profiles import DeviceProfile
from leakcheck.memory.reductions import over, scratch_bytes

FLASH = "_scaled_dot_product_flash_attention"
EFFICIENT = "_scaled_dot_product_efficient_attention"
CUDNN = "_scaled_dot_product_cudnn_attention"
_HALF = (torch.float16, torch.bfloat16)
_FLOAT_BYTES: Final = 4
_CUDNN_BYTES: Final = 256  # beside what grows with the tensors, forward and backward
_IN_REGISTERS: Final = 128  # the largest head of efficient attention that needs no accumulator
_KEYS: Final = 64  # of its backward, where it accumulates the gradients of keys and values
_TILE_HEADER_BYTES: Final = 16
_MOST_KEY_SPLITS: Final = 200  # over all batches and heads
_FLASH_ROWS, _FLASH_TILE = 128, 64  # of queries: what backward rounds to, and the tile of a split
_MOST_FLASH_SPLITS: Final = 128

_PLACE_BYTES, _SORT_BYTES = 8, 5631

# bytes, in order; ~n gives back the request of number n, and at the end all are given back
RequestSizes = Sequence[int]


class _Shape(NamedTuple):
    """The sizes of an attention; `rows` are its queries over all batches and heads."""

    heads: int
    queries: int
    keys: int
    head_dim: int

    @property
    def row_bytes(self) -> int:
        return self.heads * self.queries * _FLOAT_BYTES


def requests(name: str, args: tuple[Any, ...], out: Any, profile: DeviceProfile) -> RequestSizes:
    """Return what an operator asks for after its outputs."""
    if name in REDUCTIONS:
        return _reduction(args, out, REDUCTIONS[name], profile)
    if any(isinstance(each, torch.Tensor) and not each.numel() for each in args[:3]):
        return ()  # nothing to run a kernel for
    if name == FLASH:
        return _flash(args, profile.multiprocessors)
    rule = RULES.get(name)
    return rule(args) if rule else ()


def outputs(name: str, args: tuple[Any, ...], out: Any) -> Any:
    """Return those outputs that are on the device, in the order in which kernels ask for them.

    Efficient attention has seed and offset on the host when it drops nothing out (attention.cu);
    cuDNN's are made first (MHA.cpp), and so is the mask of a dropout (Dropout.cu).
    """
    if name == "native_dropout":
        return out[1], out[0]
    if name == CUDNN:
        return out[6], out[7], out[0], out[1]
    dropout = args[5] if len(args) > 5 else 0.0
    return out[:2] if name == EFFICIENT and not dropout else out


def _reduction(
    args: tuple[Any, ...], out: torch.Tensor, dims_at: int, profile: DeviceProfile
) -> RequestSizes:
    """Reduce.cuh; sums are made in float32 at least."""
    tensor = args[0]
    if not (isinstance(out, torch.Tensor) and out.numel() and tensor.numel()):
        return ()
    reduced = args[dims_at] if len(args) > dims_at else None
    dims = [reduced] if isinstance(reduced, int) else reduced or range(tensor.dim())
    known = {dim % max(tensor.dim(), 1) for dim in dims}
    wide = [dim for dim in range(tensor.dim()) if tensor.size(dim) > 1]
    if not wide or 0 in (tensor.stride(dim) for dim in wide):
        return ()
    fastest = min(wide, key=tensor.stride)
    return scratch_bytes(
        out.numel(),
        tensor.numel() // out.numel(),
        max(_FLOAT_BYTES, tensor.element_size(), out.element_size()),
        profile.grid,
        rows=fastest in known,
        whole=known.issuperset(wide) and tensor.is_contiguous(),
    )


def _flash(args: tuple[Any, ...], multiprocessors: int) -> RequestSizes:
    """flash_api.cpp: sums and outputs of each part, where it splits the keys to fill the device."""
    shape = _shape(args[0], args[1])
    dropout = args[3] if len(args) > 3 else 0.0
    keys = 256 if shape.head_dim <= 64 else 128 if shape.head_dim <= 128 else 64
    blocks = shape.heads * over(shape.queries, _FLASH_TILE)
    splits = _flash_splits(blocks, 2 * multiprocessors, over(shape.keys, keys))
    if dropout or splits == 1:
        return ()
    rows = splits * shape.row_bytes
    return rows, rows * _flash_columns(shape)


def _flash_splits(blocks: int, at_once: int, key_tiles: int) -> int:
    """num_splits_heuristic of flash_api.cpp: the fewest with 85 % of the best use of the device."""
    if blocks >= 0.8 * at_once:
        return 1

    def use(splits: int) -> float:
        waves = blocks * splits / at_once
        return waves / math.ceil(waves)

    most = min(_MOST_FLASH_SPLITS, at_once, key_tiles)
    tiles = {over(key_tiles, splits): splits for splits in range(most, 0, -1)}
    able = sorted(tiles.values())  # of as many tiles in a part, the fewest parts
    enough = 0.85 * max(map(use, able))
    return next(splits for splits in able if use(splits) >= enough)


def _flash_backward(args: tuple[Any, ...]) -> RequestSizes:
    """flash_api.cpp: the gradient of the queries and a sum for each row, in float32 and rounded up.

    attention_backward.cu copies `grad` and the output where they are not contiguous.
    """
    grad, query, key, out = args[0], args[1], args[2], args[4]
    shape = _shape(query, key)
    shape = shape._replace(queries=_rounded(shape.queries, _FLASH_ROWS))
    return [*_copies(grad, out), shape.row_bytes, shape.row_bytes * _flash_columns(shape)]


def _flash_columns(shape: _Shape) -> int:
    return _rounded(shape.head_dim, 32 if shape.head_dim <= 128 else 64)


def _safe_softmax(args: tuple[Any, ...]) -> RequestSizes:
    """attention.cpp looks for -inf, then for rows of it, and puts zero there, in place."""
    tensor = args[0]
    return tensor.numel(), tensor.numel() // tensor.size(args[1]), tensor.element_size()


def _softmax_backward(args: tuple[Any, ...]) -> RequestSizes:
    """SoftMax.cu multiplies the gradient and the output first."""
    return (_bytes_of(args[0]),)


def _cudnn(args: tuple[Any, ...]) -> RequestSizes:
    return (_CUDNN_BYTES,)


def _cudnn_backward(args: tuple[Any, ...]) -> RequestSizes:
    """The gradient of the queries and a sum for each row, in float32; MHA.cpp copies `grad`."""
    grad, query, out = args[0], args[1], args[4]
    copied = [] if grad.stride() == out.stride() else [_bytes_of(grad)]
    shape = _shape(query, args[2])
    return [*copied, query.numel() * _FLOAT_BYTES + shape.row_bytes + _CUDNN_BYTES]


def _efficient(args: tuple[Any, ...]) -> RequestSizes:
    """A float32 accumulator, where the output is half and a head too large for registers."""
    query, value = args[0], args[2]
    if value.dtype not in _HALF or value.size(-1) <= _IN_REGISTERS:
        return ()
    return (math.prod(query.shape[:-1]) * value.size(-1) * _FLOAT_BYTES,)


def _efficient_backward(args: tuple[Any, ...]) -> RequestSizes:
    """attention_backward.cu, and the workspace of kernel_backward.h.

    float32 multiplies `grad` and the output outside the kernel; half accumulates in the workspace.
    """
    grad, query, key = args[:3]
    copied = _copies(grad)
    shape = _shape(query, key)
    half = query.dtype in _HALF
    workspace = shape.heads * _tiles_bytes(shape, *_tile(shape.head_dim, half=half))
    if not half:
        product = len(copied)
        rows = shape.row_bytes
        return [*copied, _bytes_of(grad), rows, rows, ~(product + 1), ~product, workspace]
    if shape.head_dim > _IN_REGISTERS:
        workspace += shape.heads * 2 * _key_bytes(shape)
    return [*copied, shape.row_bytes, workspace]


def _put_sorted(args: tuple[Any, ...]) -> RequestSizes:
    """Indexing.cu sorts the places before it adds to them; as an H200 did for 4096 of them."""
    if not (len(args) > 3 and args[3]):
        return ()
    places = max(each.numel() for each in args[1] if each is not None)
    one = places * _PLACE_BYTES
    return [one] * 5 + [2 * one + _SORT_BYTES]


def _drawn(args: tuple[Any, ...]) -> RequestSizes:
    """Without replacement, Distributions.cpp divides by as many random numbers."""
    return () if len(args) > 2 and args[2] else (_bytes_of(args[0]),)


def _tile(head_dim: int, *, half: bool) -> tuple[int, int]:
    """Rows and columns by generate_kernels.py, where shared memory is as large as an H200's."""
    if head_dim <= 64:
        return 64, 64
    return 128, 128 if half and head_dim <= _IN_REGISTERS else 64


def _tiles_bytes(shape: _Shape, rows: int, columns: int) -> int:
    """Of one head: the gradient of the queries, in tiles that are locked and counted."""
    tiles = over(shape.queries, rows) * over(shape.head_dim, columns)
    return tiles * (_TILE_HEADER_BYTES + rows * columns * _FLOAT_BYTES)


def _key_bytes(shape: _Shape) -> int:
    """Of one head: the gradient of the keys, or of the values, for each split of the keys."""
    splits = max(1, min(over(shape.keys, _KEYS), _MOST_KEY_SPLITS // shape.heads))
    columns = _rounded(shape.head_dim, 128)
    return splits * _KEYS * columns * _FLOAT_BYTES


def _shape(query: torch.Tensor, key: torch.Tensor) -> _Shape:
    batch, heads, queries, head_dim = query.shape
    return _Shape(batch * heads, queries, key.size(2), head_dim)


def _copies(*tensors: torch.Tensor) -> list[int]:
    """Of those that are not contiguous as kernels see them, the heads after the rows."""
    return [_bytes_of(each) for each in tensors if not each.transpose(1, 2).is_contiguous()]


def _rounded(size: int, tile: int) -> int:
    return over(size, tile) * tile


def _bytes_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


RULES: dict[str, Callable[[tuple[Any, ...]], RequestSizes]] = {
    CUDNN: _cudnn,
    f"{CUDNN}_backward": _cudnn_backward,
    EFFICIENT: _efficient,
    f"{EFFICIENT}_backward": _efficient_backward,
    f"{FLASH}_backward": _flash_backward,
    "_safe_softmax": _safe_softmax,
    "_softmax_backward_data": _softmax_backward,
    **dict.fromkeys(("index_put", "index_put_", "_index_put_impl_"), _put_sorted),
    "multinomial": _drawn,
}
# where the argument is that names the dimensions
REDUCTIONS = {"sum": 1, "mean": 1, "prod": 1, "amax": 1, "amin": 1, "linalg_vector_norm": 2}
