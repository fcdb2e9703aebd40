"""What a predicted program saves and loads: nothing is written, what torch saved is kept.

Fake tensors hold no numbers, so a checkpoint of the same run is given back from memory, with new
storages where `torch.load` would make them; a file that was there before is read by torch, as fake
tensors. Only ever installed in the predictor's own process.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from leakcheck.memory.simulate import SimulatedDevice

UNSAVED_NOTE: Final = "what the program saves is not written: these tensors hold no numbers"
_CALLABLE_NOTE: Final = "torch.load's map_location function is taken to mean the host"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A tensor of a checkpoint, on the host, and where it came from."""

    tensor: torch.Tensor
    device: torch.device
    is_parameter: bool


def install(device: SimulatedDevice, meant: torch.device) -> None:
    """Patch torch.save and torch.load; `meant` is the device that stands for CUDA."""
    kept: dict[object, tuple[object, Any]] = {}  # name -> the file object, held, and its content
    read = torch.load

    def save(obj: object, f: Any, *_: Any, **__: Any) -> None:
        device.assume(UNSAVED_NOTE)
        kept[_name(f)] = f, _taken(obj)

    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        place = map_location
        if callable(place):
            device.assume(_CALLABLE_NOTE)
            place = "cpu"
        if _name(f) in kept:
            return _given(kept[_name(f)][1], place, meant)
        return _on_the_stand_in(read(f, place, *args, **kwargs), meant)

    torch.save = save
    torch.load = load
    _follow_renames(kept)
    _unwritten_safetensors(device)


def _follow_renames(kept: dict[object, tuple[object, Any]]) -> None:
    """Rename and remove what was saved like files; one of that name on the disk stays as it is."""

    def moving(original: Callable[..., None]) -> Callable[..., None]:
        def move(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
            if _name(source) in kept:
                kept[_name(target)] = kept.pop(_name(source))
            else:
                original(source, target, *args, **kwargs)

        return move

    def removing(original: Callable[..., None]) -> Callable[..., None]:
        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            if kwargs or kept.pop(_name(path), None) is None:
                original(path, *args, **kwargs)

        return remove

    os.rename, os.replace = moving(os.rename), moving(os.replace)
    os.remove, os.unlink = removing(os.remove), removing(os.unlink)


def _unwritten_safetensors(device: SimulatedDevice) -> None:
    """Let safetensors write nothing: it would read the memory behind fake tensors.

    What asks for shared weights before it saves them is told one address for each storage.
    """
    if find_spec("safetensors") is None:
        return
    writing: Any = import_module("safetensors.torch")
    address: Callable[[Any], int] = torch.UntypedStorage.data_ptr

    def write_nothing(*_: object, **__: object) -> bytes:
        device.assume(UNSAVED_NOTE)
        return b""

    def data_ptr(storage: Any) -> int:
        return storage._cdata if storage.device.type == "meta" else address(storage)

    for name in ("save", "save_file", "save_model"):
        setattr(writing, name, write_nothing)
    torch.UntypedStorage.data_ptr = data_ptr  # type: ignore[method-assign,assignment]


def _name(file: Any) -> object:
    """What tells one file from another: where it lies, else the object itself."""
    named = file if isinstance(file, (str, PathLike)) else getattr(file, "name", None)
    if isinstance(named, (str, PathLike)):
        return str(Path(fspath(named)).absolute())
    return id(file)


def _taken(obj: object) -> Any:
    """The content with its tensors on the host; views of one storage stay one tensor."""
    seen: dict[object, _Kept] = {}

    def take(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
            return leaf
        key = leaf.untyped_storage()._cdata, leaf.storage_offset(), leaf.size(), leaf.stride()
        if key not in seen:
            seen[key] = _Kept(_on_host(leaf), leaf.device, isinstance(leaf, torch.nn.Parameter))
        return seen[key]

    return tree_map(take, obj)


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    if isinstance(tensor, FakeTensor):
        return tensor.detach().to("cpu", copy=True)
    with _disable_current_modes():  # a file takes no memory of the device it stands for
        return tensor.detach().clone()


def _given(content: Any, place: Any, meant: torch.device) -> Any:
    """The content again, every tensor with a storage of its own where it belongs."""
    given: dict[int, torch.Tensor] = {}

    def give(leaf: object) -> object:
        if not isinstance(leaf, _Kept):
            return copy.deepcopy(leaf)
        if id(leaf) not in given:
            made = leaf.tensor.to(_placed(leaf.device, place, meant), copy=True)
            given[id(leaf)] = torch.nn.Parameter(made) if leaf.is_parameter else made
        return given[id(leaf)]

    return tree_map(give, content)


def _placed(saved_on: torch.device, place: Any, meant: torch.device) -> torch.device:
    if isinstance(place, Mapping):
        name = "cuda:0" if saved_on == meant else str(saved_on)
        place = place.get(name)
    if place is None:
        return saved_on
    return meant if torch.device(place).type == "cuda" else torch.device(place)


def _on_the_stand_in(content: Any, meant: torch.device) -> Any:
    """What torch read, with fake tensors that say CUDA made anew on the device that is counted."""
    given: dict[int, torch.Tensor] = {}

    def move(leaf: object) -> object:
        if not isinstance(leaf, FakeTensor) or leaf.fake_device.type != "cuda":
            return leaf
        storage = leaf.untyped_storage()._cdata
        if storage not in given:
            given[storage] = torch.empty_strided(
                leaf.size(), leaf.stride(), dtype=leaf.dtype, device=meant
            )
        return given[storage]

    return tree_map(move, content)
