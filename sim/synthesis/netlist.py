"""What a flat netlist of Yosys' JSON consists of: its cells by block, type and parameter."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.sim.synthesis.blocks import SourceLines, block_of_name


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory that was left out: ``words`` of ``bits``, in a block."""

    block: str
    words: int
    bits: int

    @property
    def bytes(self) -> int:
        """Return its size."""
        return self.words * self.bits // 8


@dataclass(frozen=True, slots=True)
class Netlist:
    """Cells by (block, type); memories that were left out."""

    cells: Mapping[tuple[str, str], int]
    memories: tuple[Memory, ...]


def read_netlist(path: Path, top: str, lines: SourceLines, memory_type: str = "") -> Netlist:
    """Return the contents of module ``top``; cells of ``memory_type`` are memories.

    A memory's parameters are those of Yosys' ``$mem_v2``: ``SIZE`` in words and ``WIDTH`` in bits.
    """
    with path.open(encoding="utf-8") as file:
        found = {name: cell for name, cell in json.load(file)["modules"][top]["cells"].items()
                 if not cell["type"].startswith("$")}  # $scopeinfo: where a module was
    known = {name: block for name, cell in found.items() if (block := lines.block(cell["attributes"].get("src", "")))}
    cells: Counter[tuple[str, str]] = Counter()
    memories = []
    for name, cell in found.items():
        block = known.get(name) or _leading_to(name, known) or block_of_name(name)
        if memory_type and cell["type"] == memory_type:
            size, width = (int(cell["parameters"][key], 2) for key in ("SIZE", "WIDTH"))
            memories.append(Memory(block, size, width))
        else:
            cells[block, cell["type"]] += 1
    return Netlist(cells, tuple(memories))


def _leading_to(name: str, known: Mapping[str, str]) -> str | None:
    """Return the block of the cell after which this one is named, if it is named after one: ``<cell>_<pin>_...``."""
    end = len(name)
    while (end := name.rfind("_", 0, end)) > 0:
        if block := known.get(name[:end]):
            return block
    return None
