"""Cells of a flat netlist in Yosys' JSON, by block and type, and its memories."""

import json
from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.hardware.synthesis.area_blocks import SourceLines, area_block_of_name
from tilewright.hardware.synthesis.attribution import area_blocks_of

__all__ = ["CellCounts", "SramMacro", "count_cells", "with_lone_registers"]


@dataclass(frozen=True, slots=True)
class SramMacro:
    """A memory that was left out: ``words`` of ``bits``, in a block."""

    block: str
    words: int
    bits: int

    @property
    def bytes(self) -> int:
        """Return its size."""
        return self.words * self.bits // 8


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Cells by (block, type); memories that were left out; the block of each cell."""

    cells: Mapping[tuple[str, str], int]
    memories: tuple[SramMacro, ...]
    blocks: Mapping[str, str]

    def block(self, cell: str) -> str:
        """Return the block of a cell, or of one that a later tool has named after it: ``<cell>_...``."""
        end = len(cell)
        while end > 0:
            if block := self.blocks.get(cell[:end]):
                return block
            end = cell.rfind("_", 0, end)
        return area_block_of_name(cell)


def count_cells(path: Path, top: str, lines: SourceLines, is_logic: Callable[[str], bool],
                memory_type: str = "") -> CellCounts:
    """Return the contents of module ``top``; cells of ``memory_type`` are memories.

    A memory's parameters are those of Yosys' ``$mem_v2``: ``SIZE`` in words and ``WIDTH`` in bits. For ``is_logic`` see
    `attribution.area_blocks_of`.
    """
    with path.open(encoding="utf-8") as file:
        found = {name: cell for name, cell in json.load(file)["modules"][top]["cells"].items()
                 if not cell["type"].startswith("$")}  # $scopeinfo: where a module was
    blocks = area_blocks_of(found, lines, is_logic)
    cells: Counter[tuple[str, str]] = Counter()
    memories = []
    for name, cell in found.items():
        if memory_type and cell["type"] == memory_type:
            size, width = (int(cell["parameters"][key], 2) for key in ("SIZE", "WIDTH"))
            memories.append(SramMacro(blocks[name], size, width))
        else:
            cells[blocks[name], cell["type"]] += 1
    return CellCounts(cells, tuple(memories), blocks)


def with_lone_registers(counts: CellCounts, path: Path, top: str, registers: Container[str], before: Mapping[str, str],
                        name: str) -> CellCounts:
    """Return ``counts`` with one more cell of type ``name`` for each register that has nothing before it in its place.

    ``path`` and ``top`` are those of `count_cells`; ``registers`` are types with an input ``D``, and ``before`` has the
    types that can lie before one, with their output. Each lies before one register at most.
    """
    with path.open(encoding="utf-8") as file:
        found = json.load(file)["modules"][top]["cells"]
    free = {cell["connections"][before[cell["type"]]][0] for cell in found.values() if cell["type"] in before}
    cells = Counter(counts.cells)
    for cell_name, cell in found.items():
        if cell["type"] in registers:
            source = cell["connections"]["D"][0]
            if source in free:
                free.remove(source)
            else:
                cells[counts.blocks[cell_name], name] += 1
    return replace(counts, cells=cells)
