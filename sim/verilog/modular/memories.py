"""Memories as instances of one module, so that macros of an ASIC can take the place of its body.

Those with a clocked read port and a write port of the same clock, more than 16 words deep. Smaller ones, and queues
that are read at once, are flip-flops or LUTs wherever they go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from amaranth.hdl import ClockDomain
from amaranth.hdl._ir import Fragment, Instance
from amaranth.hdl._mem import MemoryInstance

__all__ = ["MEMORY", "MemoryShape", "counted", "memory_instance", "shape_of"]

MEMORY = "tilewright_memory"
"""Name of the module."""

_FEWEST = 17
"""Words of the smallest memory that is an instance."""


@dataclass(frozen=True, slots=True, order=True)
class MemoryShape:
    """A memory: words, bits of a word, and bits that are written together."""

    depth: int
    width: int
    granule: int


def shape_of(memory: MemoryInstance) -> MemoryShape | None:
    """Return the shape of a memory that can be an instance, or None."""
    reads, writes, data = memory._read_ports, memory._write_ports, memory._data
    if len(reads) != 1 or len(writes) != 1 or data.depth < _FEWEST or any(data.init):
        return None
    (read,), (write,) = reads, writes
    if read._domain != write._domain or read._transparent_for:
        return None
    return MemoryShape(data.depth, len(write._data), write._granularity)


def memory_instance(memory: MemoryInstance, shape: MemoryShape, domains: Mapping[str, ClockDomain]) -> Instance:
    """Return a memory of ``shape`` as an instance; ``domains`` are those of the module around it."""
    (read,), (write,) = memory._read_ports, memory._write_ports
    return Instance(
        MEMORY, ("p", "DEPTH", shape.depth), ("p", "WIDTH", shape.width), ("p", "GRANULE", shape.granule),
        ("p", "ADDRESS", len(write._addr)), ("i", "clk", domains[write._domain].clk),
        ("i", "write", write._en), ("i", "write_address", write._addr), ("i", "write_data", write._data),
        ("i", "read", read._en), ("i", "read_address", read._addr), ("o", "read_data", read._data))


def counted(fragments: Iterable[Fragment]) -> dict[MemoryShape, int]:
    """Return how many memories of each shape are instances, the largest first."""
    shapes = (shape_of(each) for each in fragments if isinstance(each, MemoryInstance))
    found = Counter(shape for shape in shapes if shape is not None)
    return dict(sorted(found.items(), key=lambda each: (each[0].depth * each[0].width, each[0]), reverse=True))
