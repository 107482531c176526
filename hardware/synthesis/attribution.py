"""Attribute each cell of a flat netlist to a block.

A cell that carries a line of the gateware's Verilog (Yosys' attribute ``src``) belongs to that module: registers,
adders, multipliers. A memory, or a register that the tool made, has its path as its name. What remains is logic, made
by the mapper out of everything: it belongs to the block that most of its sinks belong to, and if it drives ports alone,
to the block that its name says.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.hardware.synthesis.area_blocks import SourceLines, area_block_of_name

__all__ = ["area_blocks_of"]

_NetlistCells = Mapping[str, Mapping[str, Any]]
"""Cells of a module in Yosys' JSON, by name."""

_MEMORY_OUTPUT = "RD_DATA"
"""The only output of a memory that was left out: no library says what its pins are."""


def area_blocks_of(cells: _NetlistCells, lines: SourceLines, is_logic: Callable[[str], bool]) -> dict[str, str]:
    """Return the block of every cell.

    Parameters
    ----------
    cells : NetlistCells
    lines : SourceLines
    is_logic : callable
        Tells of a type of cell whether its sinks decide.
    """
    known: dict[str, str] = {}
    for name, cell in cells.items():
        if block := lines.block(cell["attributes"].get("src", "")):
            known[name] = block
        elif not is_logic(cell["type"]):
            known[name] = area_block_of_name(name)
    sinks = _sinks(cells, set(cells) - set(known))
    for start in sinks:
        _decide(start, sinks, known)
    return known


def _sinks(cells: _NetlistCells, undecided: set[str]) -> dict[str, list[str]]:
    """Return the cells that each undecided one drives, once for each pin."""
    readers: dict[int, list[str]] = defaultdict(list)
    for name, cell in cells.items():
        for bit in _bits(cell, "input"):
            readers[bit].append(name)
    return {name: [reader for bit in _bits(cells[name], "output") for reader in readers[bit]]
            for name in cells if name in undecided}


def _bits(cell: Mapping[str, Any], direction: str) -> list[int]:
    """Return the wires at a cell's pins, without constants, which are strings."""
    pins = cell.get("port_directions") or {
        pin: "output" if pin == _MEMORY_OUTPUT else "input" for pin in cell["connections"]}
    return [bit for pin, bits in cell["connections"].items() if pins[pin] == direction
            for bit in bits if isinstance(bit, int)]


def _decide(start: str, sinks: Mapping[str, list[str]], known: dict[str, str]) -> None:
    """Decide a cell after all that it drives; a loop of logic, if there is one, goes by its name."""
    under_way = {start}
    waiting = [start]
    while waiting:
        name = waiting[-1]
        if name not in known:
            before = [sink for sink in sinks[name] if sink not in known and sink not in under_way]
            if before:
                under_way.update(before)
                waiting += before
                continue
            votes = Counter(known[sink] for sink in sinks[name] if sink in known)
            known[name] = max(votes, key=lambda block: (votes[block], block)) if votes else area_block_of_name(name)
        waiting.pop()
