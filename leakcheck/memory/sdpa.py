"""Attention on the fake device as the predicted device would run it.

On PrivateUse1 `scaled_dot_product_attention` takes the math path: 212 MiB where flash needs 24, in
one layer. This puts the kernel the device would choose in its place. It is a function patch, since
a TorchFunctionMode aborts the process with non-reentrant checkpointing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from leakcheck.memory.autocast import HALF, cast
from leakcheck.memory.autocast import KEY as AUTOCAST_KEY
from leakcheck.memory.profiles import DeviceProfile
from leakcheck.memory.releases import at_least

FLASH_HEAD_DIM = CUDNN_HEAD_DIM = 256
CUDNN_CAPABILITIES = ((9, 0), (10, 0))
CUDNN_SINCE = (2, 11)  # seen there; sdp_utils.cpp of 2.13 says the same
NO_CUDNN = "TORCH_CUDNN_SDPA_DEPRIORITIZED"
ENABLED: dict[str, Callable[[], bool]] = {
    "cudnn": torch.backends.cuda.cudnn_sdp_enabled,
    "flash": torch.backends.cuda.flash_sdp_enabled,
    "efficient": torch.backends.cuda.mem_efficient_sdp_enabled,
    "math": torch.backends.cuda.math_sdp_enabled,
}


class AttentionCall(NamedTuple):
    """What a kernel is asked for."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    dropout_p: float
    is_causal: bool
    scale: float | None


def choose(profile: DeviceProfile, dtype: torch.dtype, head_dim: int, *, masked: bool) -> str:
    """Return "cudnn", "flash", "efficient" or "math" by sdp_utils.cpp's order for the device.

    Of those that `torch.nn.attention.sdpa_kernel` leaves enabled. From compute capability 8.0 on
    cuDNN takes half precision, masked or not, and flash takes it without a mask; memory-efficient
    takes float32 and float16 everywhere and bfloat16 from 8.0. cuDNN comes last, after math, where
    the device does not prefer it. Raises RuntimeError, as torch does, where none is left.
    """
    half = dtype in HALF and profile.native_bf16
    takes = {
        "cudnn": half and head_dim <= CUDNN_HEAD_DIM and head_dim % 8 == 0,
        "flash": half and not masked and head_dim <= FLASH_HEAD_DIM,
        "efficient": half or dtype in (torch.float16, torch.float32),
        "math": True,
    }
    others = "flash", "efficient", "math"
    for kernel in ("cudnn", *others) if _prefers_cudnn(profile) else (*others, "cudnn"):
        if takes[kernel] and ENABLED[kernel]():
            return kernel
    raise RuntimeError("No available kernel. Aborting execution.")


def _prefers_cudnn(profile: DeviceProfile) -> bool:
    preferred = at_least(*CUDNN_SINCE) and os.environ.get(NO_CUDNN) != "1"
    return preferred and profile.capability in CUDNN_CAPABILITIES


def install(device_type: str, profile: DeviceProfile) -> None:
    """Replace the function in torch.nn.functional; other devices go on to the original."""
    original = functional.scaled_dot_product_attention
    key_of_autocast: Any = torch._C._parse_dispatch_key(AUTOCAST_KEY)
    below_autocast = torch._C.DispatchKeySet(key_of_autocast)

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if query.device.type != device_type:
            return original(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                enable_gqa=enable_gqa,
            )  # fmt: skip
        if torch.is_autocast_enabled(device_type):
            lower = torch.get_autocast_dtype(device_type)
            attn_mask = None if attn_mask is None else cast(attn_mask, lower, device_type)
            value, key, query = (cast(each, lower, device_type) for each in (value, key, query))
        if enable_gqa and key.size(-3) != query.size(-3):
            repeats = query.size(-3) // key.size(-3)
            key, value = (each.repeat_interleave(repeats, -3) for each in (key, value))
        attn_mask = _additive(attn_mask, query)
        kernel = choose(profile, query.dtype, query.size(-1), masked=attn_mask is not None)
        run = KERNELS[kernel] if query.dim() == 4 else _math
        # below autocast, as the real operator runs: the math path computes in float32
        with torch._C._ExcludeDispatchKeyGuard(below_autocast):
            return run(AttentionCall(query, key, value, attn_mask, dropout_p, is_causal, scale))

    functional.scaled_dot_product_attention = attention


def _flash(call: AttentionCall) -> Any:
    flash = torch.ops.aten._scaled_dot_product_flash_attention
    tensors = call.query, call.key, call.value
    return flash(*tensors, call.dropout_p, call.is_causal, False, scale=call.scale)[0]


def _cudnn(call: AttentionCall) -> Any:
    cudnn = torch.ops.aten._scaled_dot_product_cudnn_attention
    tensors = call.query, call.key, call.value
    told = _mask(call), _keeps(call), call.dropout_p, call.is_causal, False
    return cudnn(*tensors, *told, scale=call.scale)[0]


def _efficient(call: AttentionCall) -> Any:
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention
    tensors = call.query, call.key, call.value
    told = _mask(call), _keeps(call), call.dropout_p, call.is_causal
    return efficient(*tensors, *told, scale=call.scale)[0]


def _additive(mask: torch.Tensor | None, query: torch.Tensor) -> torch.Tensor | None:
    """As attention.cpp does for every kernel: what a boolean mask keeps out becomes -inf."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.where(mask, 0.0, query.new_full((), float("-inf")))


def _mask(call: AttentionCall) -> torch.Tensor | None:
    query, key, mask = call.query, call.key, call.mask
    if mask is None:
        return None
    return mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))


def _keeps(call: AttentionCall) -> bool:
    """Whether backward will need the sums of the softmax."""
    tensors = call.query, call.key, call.value
    return any(each.requires_grad for each in tensors) and torch.is_grad_enabled()


def _math(call: AttentionCall) -> Any:
    math = torch.ops.aten._scaled_dot_product_attention_math
    tensors = call.query, call.key, call.value
    return math(*tensors, call.mask, call.dropout_p, call.is_causal, scale=call.scale)[0]


KERNELS = {"cudnn": _cudnn, "flash": _flash, "efficient": _efficient, "math": _math}
