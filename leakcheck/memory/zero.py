"""ZeRO estimators: model states of mixed-precision Adam training, by stage, in closed form.

The names, options, arithmetic and tables are those of DeepSpeed 0.19.6 (`stage_1_and_2.py`,
`stage3.py`, revision edaa722); where its documentation states another formula, both are shown.
Activations, buckets and framework overhead are left out: on ten real training steps the ZeRO-2
formula on one GPU was off by 25 % on average.

P parameters, L parameters of the largest layer, G GPUs per node, N nodes, T = G * N, f the
additional buffer factor. All results are bytes; "GB" in the tables is 2**30, as in the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BUFFER_FACTOR = 1.5
GIB = 2**30
HEADER = "  per CPU  |  per GPU |   Options"


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes per node on the host and per GPU, for one line of a table."""

    cpu_bytes: int
    gpu_bytes: int
    options: str

    def __str__(self) -> str:
        cpu, gpu = self.cpu_bytes / GIB, self.gpu_bytes / GIB
        return f" {cpu:7.2f}GB | {gpu:6.2f}GB | {self.options}"


def estimate_zero1_model_states_mem_needs(
    total_params: int,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    cpu_offload: bool = True,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> tuple[int, int]:
    """Return (cpu, gpu) bytes when only the optimizer's states are partitioned.

    GPU: 2P + 2P + 12P/T (Rajbhandari et al. 2020, section 3.2, K = 12); with the optimizer on the
    host 4P stay. The host's share follows ZeRO-2.
    """
    gpus = num_gpus_per_node * num_nodes
    if cpu_offload:
        return int(total_params * max(4 * gpus, 16) * additional_buffer_factor), 4 * total_params
    cpu = int(total_params * 4 * num_gpus_per_node * additional_buffer_factor)
    return cpu, 4 * total_params + int(12 * total_params / gpus)


def estimate_zero2_model_states_mem_needs(
    total_params: int,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    cpu_offload: bool = True,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> tuple[int, int]:
    """Return (cpu, gpu) bytes as the code computes them: 2P, or 2P + 18P/T without offload."""
    gpus = num_gpus_per_node * num_nodes
    if cpu_offload:
        return int(total_params * max(4 * gpus, 16) * additional_buffer_factor), 2 * total_params
    cpu = int(total_params * 4 * num_gpus_per_node * additional_buffer_factor)
    return cpu, 2 * total_params + int(18 * total_params / gpus)


def documented_zero2_model_states_mem_needs(
    total_params: int,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    cpu_offload: bool = True,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> tuple[int, int]:
    """Return (cpu, gpu) bytes as documented: 4G instead of 4T, and 4P + 16P/T on the GPU."""
    if cpu_offload:
        cpu = int(total_params * max(4 * num_gpus_per_node, 16) * additional_buffer_factor)
        return cpu, 2 * total_params
    gpus = num_gpus_per_node * num_nodes
    cpu = int(total_params * 4 * num_gpus_per_node * additional_buffer_factor)
    return cpu, 4 * total_params + int(16 * total_params / gpus)


def estimate_zero3_model_states_mem_needs(
    total_params: int,
    largest_layer_params: int,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    cpu_offload: bool = True,
    cpu_offload_params: bool = True,
    zero_init: bool = True,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> tuple[int, int, int]:
    """Return (cpu, gpu, largest layer) bytes; parameters, too, are partitioned."""
    per_node, factor = 1 / num_nodes, additional_buffer_factor
    gpus = num_gpus_per_node * num_nodes
    largest_layer_bytes = 4 * largest_layer_params
    if not cpu_offload:
        gpu = largest_layer_bytes + int(18 * total_params / gpus)
        held = largest_layer_params if zero_init else total_params
        return int(held * 4 * num_gpus_per_node * factor), gpu, largest_layer_bytes
    state = 18 if cpu_offload_params else 16
    gpu = largest_layer_bytes
    gpu += 0 if cpu_offload_params else int(2 * total_params / gpus)
    if zero_init:
        cpu = total_params * state * per_node * factor
    else:
        cpu = total_params * max(4 * num_gpus_per_node, state * per_node) * factor
    return int(cpu), gpu, largest_layer_bytes


def estimate_zero1_model_states_mem_needs_all_cold(
    total_params: int,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> str:
    """Return the ZeRO-1 table for a model of which only the size is known."""
    return "\n".join(
        _zero12_table(1, total_params, num_gpus_per_node, num_nodes, additional_buffer_factor)
    )


def estimate_zero2_model_states_mem_needs_all_cold(
    total_params: int,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> str:
    """Return the ZeRO-2 table for a model of which only the size is known."""
    return "\n".join(
        _zero12_table(2, total_params, num_gpus_per_node, num_nodes, additional_buffer_factor)
    )


def estimate_zero3_model_states_mem_needs_all_cold(
    total_params: int,
    largest_layer_params: int,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> str:
    """Return the ZeRO-3 table for a model of which only the sizes are known."""
    return "\n".join(
        _zero3_table(
            total_params,
            largest_layer_params,
            num_gpus_per_node,
            num_nodes,
            additional_buffer_factor,
        )
    )


def estimate_zero1_model_states_mem_needs_all_live(
    model: torch.nn.Module,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> str:
    """Return the ZeRO-1 table for a model object."""
    return estimate_zero1_model_states_mem_needs_all_cold(
        total_params(model), num_gpus_per_node, num_nodes, additional_buffer_factor
    )


def estimate_zero2_model_states_mem_needs_all_live(
    model: torch.nn.Module,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> str:
    """Return the ZeRO-2 table for a model object."""
    return estimate_zero2_model_states_mem_needs_all_cold(
        total_params(model), num_gpus_per_node, num_nodes, additional_buffer_factor
    )


def estimate_zero3_model_states_mem_needs_all_live(
    model: torch.nn.Module,
    num_gpus_per_node: int = 1,
    num_nodes: int = 1,
    additional_buffer_factor: float = BUFFER_FACTOR,
) -> str:
    """Return the ZeRO-3 table for a model object."""
    return estimate_zero3_model_states_mem_needs_all_cold(
        total_params(model),
        largest_layer_params(model),
        num_gpus_per_node,
        num_nodes,
        additional_buffer_factor,
    )


def total_params(model: torch.nn.Module) -> int:
    """Count the elements of every distinct parameter, tied weights once.

    Identity is storage, offset and shape, not `data_ptr`, which is 0 for every meta tensor; a
    parameter that ZeRO-3 has partitioned counts its full size.
    """
    return sum(_distinct(model.parameters()).values())


def largest_layer_params(model: torch.nn.Module) -> int:
    """Count the elements of the module that itself owns the most."""
    own = (sum(_distinct(m.parameters(recurse=False)).values()) for m in model.modules())
    return max(own, default=0)


def _distinct(parameters: Iterable[torch.nn.Parameter]) -> dict[object, int]:
    found: dict[object, int] = {}
    for parameter in parameters:
        storage = parameter.untyped_storage()._cdata
        key = storage, parameter.storage_offset(), tuple(parameter.shape)
        found[key] = int(getattr(parameter, "ds_numel", parameter.numel()))
    return found


def _zero12_table(
    stage: int, total: int, per_node: int, nodes: int, factor: float
) -> Iterator[str]:
    yield from _title(per_node, nodes, f"{int(total / 1e6)}M total params.")
    yield HEADER
    yield from map(str, zero12_needs(stage, total, per_node, nodes, factor))


def zero12_needs(
    stage: int, total: int, per_node: int, nodes: int, factor: float
) -> Iterator[Need]:
    """Yield the lines of a ZeRO-1 or ZeRO-2 table; where the document differs, its line, too."""
    code = (estimate_zero1_model_states_mem_needs, estimate_zero2_model_states_mem_needs)[stage - 1]
    for offload in (True, False):
        options = f"offload_optimizer={'cpu' if offload else 'none'}"
        yield Need(*code(total, per_node, nodes, offload, factor), options)
        stated = documented_zero2_model_states_mem_needs(total, per_node, nodes, offload, factor)
        if stage == 2 and stated != code(total, per_node, nodes, offload, factor):
            yield Need(*stated, f"{options} (as documented)")


def _zero3_table(
    total: int, largest: int, per_node: int, nodes: int, factor: float
) -> Iterator[str]:
    sizes = f"{int(total / 1e6)}M total params, {int(largest / 1e6)}M largest layer params."
    yield from _title(per_node, nodes, sizes)
    yield HEADER
    yield from map(str, zero3_needs(total, largest, per_node, nodes, factor))


def zero3_needs(
    total: int, largest: int, per_node: int, nodes: int, factor: float
) -> Iterator[Need]:
    """Yield the six lines of a ZeRO-3 table."""
    for offload, offload_params in ((True, True), (True, False), (False, False)):
        for zero_init in (True, False):
            cpu, gpu, _ = estimate_zero3_model_states_mem_needs(
                total, largest, per_node, nodes, offload, offload_params, zero_init, factor
            )
            devices = [f"{'cpu' if on else 'none':<4}" for on in (offload_params, offload)]
            options = f"offload_param={devices[0]}, offload_optimizer={devices[1]}"
            yield Need(cpu, gpu, f"{options}, zero_init={int(zero_init)}")


def _title(per_node: int, nodes: int, model: str) -> Iterator[str]:
    yield "Estimated memory needed for params, optim states and gradients for a:"
    node, gpu = "nodes" if nodes > 1 else "node", "GPUs" if per_node > 1 else "GPU"
    yield f"HW: Setup with {nodes} {node}, {per_node} {gpu} per node."
    yield f"SW: Model with {model}"
