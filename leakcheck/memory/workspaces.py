"""How much scratch memory torch gives cuBLAS and cuBLASLt, and how it is told from a leak.

CublasHandlePool.cpp takes one block for each handle and stream, when the first matrix product needs
it, and keeps it. cuBLASLt runs in a second block of the same handle. Pure arithmetic: sizes in
bytes, the environment as a mapping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

HOPPER: Final = (9, 0)
HOPPER_CUBLAS_BYTES: Final = 32 << 20  # for compute capability 9.0 alone
CUBLAS_BYTES: Final = 4096 * 1024 * 2 + 16 * 1024 * 8
CUBLASLT_BYTES: Final = 1024 * 1024
# used for no product, or in the block that cuBLAS has
_WITHOUT_CUBLASLT = ("DISABLE_ADDMM_CUDA_LT", "TORCH_CUBLASLT_UNIFIED_WORKSPACE")
_PAIR = re.compile(r":(\d+):(\d+)")  # KiB and how many of them


class WorkspaceSizes(NamedTuple):
    """What a block may be asked for with to be a workspace: any of `cublas`, or `cublaslt`."""

    cublas: frozenset[int]
    cublaslt: int


def cublas_bytes(capability: tuple[int, int], environment: Mapping[str, str]) -> int:
    """Return what cuBLAS gets for one handle and stream.

    CUBLAS_WORKSPACE_CONFIG, as ":KIB:COUNT" pairs that are summed, takes the place of the default.
    """
    configured = _configured_bytes(environment)
    if configured is not None:
        return configured
    return HOPPER_CUBLAS_BYTES if capability == HOPPER else CUBLAS_BYTES


def cublaslt_bytes(cublas: int, environment: Mapping[str, str]) -> int:
    """Return what cuBLASLt gets beside the `cublas` bytes of the same handle; 0 for no block.

    CUBLASLT_WORKSPACE_SIZE says it in KiB; it is never more than cuBLAS has. An H200 (torch 2.11)
    took 1 MiB, and none with CUBLAS_WORKSPACE_CONFIG=:0:0.
    """
    if "1" in (environment.get(name) for name in _WITHOUT_CUBLASLT):
        return 0
    wanted = CUBLASLT_BYTES
    with suppress(KeyError, ValueError):
        wanted = int(environment["CUBLASLT_WORKSPACE_SIZE"]) * 1024
    return min(wanted, cublas)


def known_sizes(environment: Mapping[str, str]) -> WorkspaceSizes:
    """Return the sizes of workspaces on any device that runs in this environment."""
    configured = _configured_bytes(environment)
    both = {CUBLAS_BYTES, HOPPER_CUBLAS_BYTES} if configured is None else {configured}
    return WorkspaceSizes(frozenset(both - {0}), cublaslt_bytes(max(both), environment))


def uses_cublaslt(
    bias: tuple[int, ...], weight: tuple[int, ...], *, floating: bool, beta: object = 1
) -> bool:
    """Return whether `addmm(bias, x, weight)` goes through cuBLASLt, by its shapes.

    Blas.cpp asks for a bias of one dimension that is added as it is, and for a real weight of more
    than one row and column; one row of x is enough (H200, torch 2.11).
    """
    return floating and beta == 1 and bias == weight[1:] and min(weight) > 1


def _configured_bytes(environment: Mapping[str, str]) -> int | None:
    pairs = _PAIR.findall(environment.get("CUBLAS_WORKSPACE_CONFIG", ""))
    return sum(int(kib) * 1024 * int(count) for kib, count in pairs) if pairs else None
