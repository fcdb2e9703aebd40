"""What a device decides by itself: the kernel of an attention, the dtype under autocast.

Sections of gpu_sections.py, which run on a real device and in the predictor alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
HEAD_DIMS = (32, 64, 80, 128, 256, 512)
MASKS = ("none", "bool", "float", "causal")
BATCH, HEADS, LENGTH = 2, 4, 128
KERNELS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
SIZES = ((BATCH, HEADS, LENGTH), (4, 8, 512), (1, 3, 200))  # batch, heads, length
KERNEL_HEAD_DIMS = (64, 80, 128)


def attention() -> dict[str, list[int]]:
    """Allocated bytes of one attention: its inputs, then after forward, its peak, after backward.

    By "dtype head_dim mask". Which kernel ran shows in what it saves and what backward needs.
    """
    cases = itertools.product(DTYPES, HEAD_DIMS, MASKS)
    return {
        f"{d} {h} {m}": _attention((BATCH, HEADS, LENGTH, h), DTYPES[d], m) for d, h, m in cases
    }


def attention_by_kernel() -> dict[str, list[int]]:
    """The same of each kernel and of more lengths, by "BxHxL kernel dtype head_dim mask".

    Cases that a kernel refuses are left out; the first matrix product makes a workspace.
    """
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    told = {}
    for size, kernel, d, h, m in itertools.product(SIZES, KERNELS, DTYPES, KERNEL_HEAD_DIMS, MASKS):
        with sdpa_kernel(KERNELS[kernel]), suppress(RuntimeError):
            name = f"{'x'.join(map(str, size))} {kernel} {d} {h} {m}"
            told[name] = _attention((*size, h), DTYPES[d], m)
    return told


def _attention(shape: tuple[int, int, int, int], dtype: torch.dtype, mask: str) -> list[int]:
    start, length = torch.cuda.memory_allocated(), shape[2]
    q, k, v = (torch.randn(shape, device="cuda", dtype=dtype).requires_grad_() for _ in range(3))
    wanted: torch.Tensor | None = None
    if mask == "bool":
        wanted = torch.ones(length, length, dtype=torch.bool, device="cuda")
    if mask == "float":
        wanted = torch.zeros(length, length, dtype=dtype, device="cuda")
    told = [torch.cuda.memory_allocated() - start]
    torch.cuda.reset_peak_memory_stats()
    out = F.scaled_dot_product_attention(q, k, v, wanted, is_causal=mask == "causal")
    told += [torch.cuda.memory_allocated() - start, torch.cuda.max_memory_allocated() - start]
    torch.cuda.reset_peak_memory_stats()
    out.sum().backward()
    told += [torch.cuda.memory_allocated() - start, torch.cuda.max_memory_allocated() - start]
    return told


def kernels() -> dict[str, int]:
    """Which attention kernel the device says it would choose, as torch numbers them."""
    chosen = {}
    for d, h, m in itertools.product(DTYPES, HEAD_DIMS, MASKS):
        shape, dtype = (BATCH, HEADS, LENGTH, h), DTYPES[d]
        q = torch.randn(shape, device="cuda", dtype=dtype).requires_grad_()
        mask = {
            "bool": torch.ones(LENGTH, LENGTH, dtype=torch.bool, device="cuda"),
            "float": torch.zeros(LENGTH, LENGTH, dtype=dtype, device="cuda"),
        }.get(m)
        chosen[f"{d} {h} {m}"] = torch._fused_sdp_choice(q, q, q, mask, 0.0, m == "causal")
    return chosen


def autocast() -> dict[str, list[str]]:
    """The dtype each operator answers with under bfloat16 autocast, of float32 and bfloat16."""
    return {name: [_dtype(run, d) for d in ("float32", "bfloat16")] for name, run in CALLS.items()}


def _dtype(run: Callable[[torch.Tensor], torch.Tensor], dtype: str) -> str:
    x = torch.rand(8, 8, device="cuda", dtype=DTYPES[dtype])
    with torch.autocast("cuda", torch.bfloat16), suppress(RuntimeError):
        return str(run(x).dtype).removeprefix("torch.")
    return "refused"


def _image(x: torch.Tensor) -> torch.Tensor:
    return x.view(1, 4, 4, 4)


def _gates(x: torch.Tensor, count: int) -> list[torch.Tensor]:
    return [x.repeat(count, 1)] * 2 + [x[0].repeat(count)] * 2


def _labels(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(8, dtype=torch.long, device="cuda")


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linear": lambda x: F.linear(x, x),
    "matmul": lambda x: x @ x,
    "mv": lambda x: x.mv(x[0]),
    "bmm": lambda x: torch.bmm(x[None], x[None]),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x[None]),
    "addmm": lambda x: torch.addmm(x, x, x),
    "addr": lambda x: torch.addr(x, x[0], x[0]),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x, x]),
    "vecdot": lambda x: torch.linalg.vecdot(x, x),
    "conv1d": lambda x: F.conv1d(x[None], x[:, :, None]),
    "conv2d": lambda x: F.conv2d(_image(x), _image(x)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(_image(x), x.view(4, 4, 2, 2)),
    "prelu": lambda x: F.prelu(x, x[0]),
    "gru_cell": lambda x: torch.gru_cell(x, x, *_gates(x, 3)),
    "lstm_cell": lambda x: torch.lstm_cell(x, (x, x), *_gates(x, 4))[0],
    "attention": lambda x: F.scaled_dot_product_attention(
        x.view(1, 1, 8, 8), x.view(1, 1, 8, 8), x.view(1, 1, 8, 8)
    ),
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "pow": lambda x: x.pow(2),
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "acos": torch.acos,
    "sinh": torch.sinh,
    "tan": torch.tan,
    "erfinv": torch.erfinv,
    "softplus": F.softplus,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "softmin": lambda x: F.softmin(x, -1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "sum": torch.sum,
    "mean": torch.mean,
    "prod": torch.prod,
    "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "var": torch.var,
    "std": torch.std,
    "norm": torch.norm,
    "vector_norm": torch.linalg.vector_norm,
    "dist": lambda x: torch.dist(x, x),
    "cdist": lambda x: torch.cdist(x, x),
    "pdist": torch.pdist,
    "renorm": lambda x: x.renorm(2, 0, 1.0),
    "layer_norm": lambda x: F.layer_norm(x, (8,)),
    "rms_norm": lambda x: F.rms_norm(x, (8,)),
    "group_norm": lambda x: F.group_norm(_image(x), 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(_image(x)),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "l1_loss": lambda x: F.l1_loss(x, x),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x),
    "huber_loss": lambda x: F.huber_loss(x, x),
    "kl_div": lambda x: F.kl_div(x, x, reduction="batchmean"),
    "cross_entropy": lambda x: F.cross_entropy(x, _labels(x)),
    "nll_loss": lambda x: F.nll_loss(x, _labels(x)),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, x),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x, x),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x),
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "dropout": F.dropout,
    "max_pool2d": lambda x: F.max_pool2d(_image(x), 2),
    "avg_pool2d": lambda x: F.avg_pool2d(_image(x), 2),
    "interpolate": lambda x: F.interpolate(_image(x), scale_factor=2.0, mode="bilinear"),
    "grid_sample": lambda x: F.grid_sample(
        _image(x), torch.zeros(1, 2, 2, 2, device="cuda"), align_corners=False
    ),
    "embedding": lambda x: F.embedding(_labels(x), x),
    "cat": lambda x: torch.cat([x, x.float()]),
    "stack": lambda x: torch.stack([x, x.float()]),
    "add": lambda x: x + x,
    "addcmul": lambda x: torch.addcmul(x.float(), x, x),
    "bilinear": lambda x: F.bilinear(x, x, x.view(1, 8, 8)),
    "cross": lambda x: torch.linalg.cross(x[:, :3], x[:, :3].float()),
    "tensordot": lambda x: torch.tensordot(x, x.float(), 1),
    "index_put": lambda x: x.clone().index_put((_labels(x),), x),
    "scatter_add": lambda x: x.clone().scatter_add(0, _labels(x)[None], x),
}
