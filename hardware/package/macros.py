"""Memory macros of open processes: how many a memory takes, and Verilog of the package's memory made of them."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.sim.verilog.modular.memories import MEMORY, MemoryShape
from tilewright.tools.templates import render

__all__ = ["LIBRARIES", "MacroLibrary", "macro_files"]

_TEMPLATE = Path(__file__).parent / "templates" / "macro_memory.v.j2"
_NARROW_BITS, _WIDE_BITS = 8, 32
_LINE, _GLUE = 108, "~~"
"""Characters of a line of connections, and what stands for a space at which none is broken."""


@dataclass(frozen=True, slots=True)
class MemoryMacro:
    """A macro of ``words`` of ``bits``, with a port that writes and one that reads."""

    name: str
    words: int
    bits: int

    @property
    def places(self) -> int:
        """Bits of its address."""
        return (self.words - 1).bit_length()


@dataclass(frozen=True, slots=True)
class MacroLibrary:
    """Macros of a process: one for memories of at most 8 bits a word, one for all others.

    ``pins`` gives the expression of each pin from those for write and read address, data in, mask and data out;
    ``mask_bits`` are written together, and ``keeps`` says that the last word read stays at the output.
    """

    process: str
    maker: str
    narrow: MemoryMacro
    wide: MemoryMacro
    mask_bits: int
    keeps: bool
    pins: Callable[[Mapping[str, str]], Mapping[str, str]]

    @property
    def file(self) -> str:
        """Its path in the package."""
        return f"macros/{self.process}_memory.v"

    @property
    def masked(self) -> str:
        """The unit that a macro writes of a word: bytes or bits."""
        return "bytes" if self.mask_bits == 8 else "bits"

    def count(self, shape: MemoryShape) -> int:
        """Return how many macros a memory takes."""
        macro = self.narrow if shape.width <= _NARROW_BITS else self.wide
        return -(-shape.depth // macro.words) * -(-shape.width // macro.bits)

    def connections(self, macro: MemoryMacro) -> list[str]:
        """Return lines of the connections of a macro in the template, each ``.pin(expression)`` on one."""
        bits, masks = macro.bits, macro.bits // self.mask_bits
        mask = f"{masks} * column +: {masks}" if masks > 1 else "column"
        pins = self.pins({
            "write_address": f"write_from[{macro.places - 1}:0]", "read_address": f"read_from[{macro.places - 1}:0]",
            "data_in": f"data_in[{bits} * column +: {bits}]", "mask": f"mask[{mask}]",
            "data_out": f"row_data[{bits} * (COLUMNS * row + column) +: {bits}]",
            "no_address": f"{macro.places}'b0", "no_data": f"{bits}'b0",
        })
        kept = ", ".join(f".{name}({expression.replace(' ', _GLUE)})" for name, expression in pins.items())
        return [line.replace(_GLUE, " ") for line in textwrap.wrap(kept, _LINE, break_on_hyphens=False)]


def _openram(wires: Mapping[str, str]) -> dict[str, str]:
    """Return pins of OpenRAM's macros: port 0 reads and writes, port 1 reads."""
    return {"clk0": "clk", "csb0": "~writes", "web0": "1'b0", "wmask0": wires["mask"], "addr0": wires["write_address"],
            "din0": wires["data_in"], "dout0": "", "clk1": "clk", "csb1": "~reads", "addr1": wires["read_address"],
            "dout1": wires["data_out"]}


def _ihp(wires: Mapping[str, str]) -> dict[str, str]:
    """Return pins of IHP's macros of two ports, A and B, each of which could do both; ``DLY`` must be high."""
    pins: dict[str, str] = {}
    for port, enable, address, data, mask, output in (
            ("A", ("writes", "1'b1", "1'b0"), wires["write_address"], wires["data_in"], wires["mask"], ""),
            ("B", ("reads", "1'b0", "1'b1"), wires["read_address"], wires["no_data"], wires["no_data"],
             wires["data_out"])):
        used = dict(zip(("MEN", "WEN", "REN"), enable, strict=True)) | {"ADDR": address, "DIN": data, "BM": mask}
        unused = dict.fromkeys(("EN", "CLK", "MEN", "WEN", "REN"), "1'b0") | {
            "ADDR": wires["no_address"], "DIN": wires["no_data"], "BM": wires["no_data"]}
        pins |= {f"{port}_CLK": "clk", **{f"{port}_{name}": wire for name, wire in used.items()}, f"{port}_DLY": "1'b1",
                 f"{port}_DOUT": output, **{f"{port}_BIST_{name}": wire for name, wire in unused.items()}}
    return pins


LIBRARIES = (
    MacroLibrary("sky130", "OpenRAM made for sky130",
                 MemoryMacro("sky130_sram_1kbyte_1rw1r_8x1024_8", 1024, _NARROW_BITS),
                 MemoryMacro("sky130_sram_2kbyte_1rw1r_32x512_8", 512, _WIDE_BITS),
                 mask_bits=8, keeps=False, pins=_openram),
    MacroLibrary("sg13g2", "IHP's open PDK has for SG13G2",
                 MemoryMacro("RM_IHPSG13_2P_512x8_c2_bm_bist", 512, _NARROW_BITS),
                 MemoryMacro("RM_IHPSG13_2P_512x32_c2_bm_bist", 512, _WIDE_BITS),
                 mask_bits=1, keeps=True, pins=_ihp),
)
"""Of the processes for which the package has a memory of macros."""


def macro_files() -> dict[str, str]:
    """Return the memory of each library's macros, by its path in the package."""
    return {each.file: render(_TEMPLATE, library=each, memory=MEMORY) for each in LIBRARIES}
