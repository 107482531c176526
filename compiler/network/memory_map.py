"""Main memory: addresses of weights, inputs, intermediate tensors, outputs and records, and who may access them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tilewright.compiler.network.layers import Network, TensorInfo
from tilewright.compiler.network.layout import layout_of
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission
from tilewright.isa.program import DTYPES

__all__ = ["ALIGNMENT", "MemoryPlan", "plan_memory", "root_of", "tensor_bytes", "words_of"]

ALIGNMENT = 64
"""Start of every tensor: a multiple of any bus width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """The memory map, in absolute addresses, also of parts of tensors; ``compiler.network.layout`` has layouts.

    ``peak_bytes`` is what the intermediate tensors take together, ``memory_bytes`` the whole map. ``opening`` is where
    the record of what the first call alone loads lies, if weights stay between calls.
    """

    weights: int
    tensors: Mapping[str, int]
    records: tuple[int, ...]
    windows: tuple[AddressWindow, ...]
    peak_bytes: int
    memory_bytes: int
    opening: int | None = None


def _align(value: int) -> int:
    """Return ``value`` rounded up to a multiple of ``ALIGNMENT``."""
    return -(-value // ALIGNMENT) * ALIGNMENT


def tensor_bytes(tensor: TensorInfo) -> int:
    """Return the bytes from a tensor's first element to the end of its last."""
    if tensor.place is not None:
        return layout_of(tensor).span
    return math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def root_of(tensor: TensorInfo) -> str:
    """Return the name of the tensor that ``tensor`` is part of, or its own."""
    return tensor.place.parent if tensor.place is not None else tensor.name


def words_of(name: str, tensors: Mapping[str, TensorInfo]) -> str:
    """Return the tensor of wider elements whose bytes the tensor ``name`` is, or ``name``."""
    place = tensors[name].place if name in tensors else None
    return place.parent if place is not None and DTYPES[tensors[place.parent].dtype] > 1 else name


def plan_memory(network: Network, weight_bytes: int, *, keep_tensors: bool = False,
                on_chip: frozenset[str] = frozenset(), together: Iterable[range] = (),
                constants: Mapping[str, int] = MappingProxyType({}), keep_weights: bool = False) -> MemoryPlan:
    """Lay out main memory; with ``keep_tensors`` no two tensors share a place. Those ``on_chip`` have none.

    ``constants`` start so many bytes behind the weights' first. With ``keep_weights`` there is a record more.

    Layers that are computed ``together`` take turns: what the first reads and what the last writes are there at once.
    Only tensors that are no parts of others are placed; parts lie where their place in those says.
    """
    def roots(names: Iterable[str]) -> set[str]:
        return {root_of(network.tensors[name]) for name in names if name in network.tensors} - on_chip

    read = roots(name for layer in network.layers for name in layer.reads)
    written = roots(name for layer in network.layers for name in layer.writes)
    inputs = roots(tensor.name for tensor in network.inputs) - written
    outputs = roots(tensor.name for tensor in network.outputs) - inputs
    # An output that a layer reads again must be readable: it lies among the intermediate tensors, for good.
    alone = outputs - read
    turns = {index: each for each in together for index in each}
    offsets, peak = _place_intermediate(network, written - alone, outputs & read, turns, keep_tensors=keep_tensors)
    size = {name: _align(tensor_bytes(network.tensors[name])) for name in inputs | written | alone}

    windows, cursor = [], MAIN_BASE
    tensors = {name: MAIN_BASE + offset for name, offset in constants.items() if name in network.tensors}

    def window(name: str, stop: int, permission: Permission) -> None:
        nonlocal cursor
        if stop > cursor:
            windows.append(AddressWindow(cursor, stop, permission, name))
        cursor = stop

    window("weights", cursor + _align(weight_bytes), Permission.READ)
    end = cursor
    for name in dict.fromkeys(root_of(network.tensors[tensor.name]) for tensor in network.inputs):
        if name in inputs:
            tensors[name], end = end, end + size[name]
    window("inputs", end, Permission.READ)
    tensors |= {name: cursor + offset for name, offset in offsets.items()}
    window("activations", cursor + peak, Permission.READ_WRITE)
    end = cursor
    made = (root_of(network.tensors[name]) for layer in network.layers for name in layer.writes)
    for name in dict.fromkeys(each for each in made if each in alone):
        tensors[name], end = end, end + size[name]
    tensors |= {info.name: tensors[info.place.parent] + info.place.offset for info in network.tensors.values()
                if info.place is not None and info.place.parent in tensors}
    step = 4 * RECORD_WORDS
    records = tuple(range(end, end + step * len(network.layers), step))
    opening = end + step * len(records) if keep_weights else None
    window("outputs", _align(end + step * (len(records) + keep_weights)), Permission.WRITE)
    return MemoryPlan(weights=MAIN_BASE, tensors=tensors, records=records, windows=tuple(windows), peak_bytes=peak,
                      memory_bytes=cursor - MAIN_BASE, opening=opening)


def _place_intermediate(network: Network, names: set[str], for_good: set[str], turns: Mapping[int, range],
                       *, keep_tensors: bool) -> tuple[dict[str, int], int]:
    """Return offsets of the intermediate tensors, and the bytes they take together.

    Largest first, each at the lowest offset that no tensor alive at the same time takes. A tensor is alive from the
    first layer that writes any part of it to the last that reads any; layers that take turns are one in that.
    """
    lives: dict[str, tuple[int, int]] = {}
    for tensor in network.inputs:
        # One that a layer writes parts of: it is there from the start.
        if (name := root_of(network.tensors[tensor.name])) in names:
            lives[name] = (0, 0)
    for index, layer in enumerate(network.layers):
        for name in (*layer.writes, *layer.reads):
            root = root_of(network.tensors[name]) if name in network.tensors else name
            if root in names:
                during = turns.get(index, range(index, index + 1))
                lives[root] = (lives.get(root, (during.start, 0))[0], during.stop - 1)
    if keep_tensors:
        for_good = set(lives)
    last = len(network.layers)
    lives = {name: (0 if keep_tensors else born, last if name in for_good else dead)
             for name, (born, dead) in lives.items()}
    offsets: dict[str, int] = {}
    for name in sorted(lives, key=lambda each: (-tensor_bytes(network.tensors[each]), lives[each])):
        size = _align(tensor_bytes(network.tensors[name]))
        rivals = sorted((offsets[other], offsets[other] + _align(tensor_bytes(network.tensors[other])))
                        for other in offsets if lives[other][0] <= lives[name][1] and lives[name][0] <= lives[other][1])
        start = 0
        for low, high in rivals:
            if start + size <= low:
                break
            start = max(start, high)
        offsets[name] = start
    return offsets, max((offsets[name] + _align(tensor_bytes(network.tensors[name])) for name in offsets), default=0)
