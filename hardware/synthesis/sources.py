"""The Verilog that is synthesised and the Yosys commands that read it: the coprocessor, alone or beside its core."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.synthesis.area_blocks import SourceLines
from tilewright.isa.machine import Machine
from tilewright.sim.verilog.core_sources import core_sources, system_sources
from tilewright.sim.verilog.elaborate import coprocessor_verilog
from tilewright.sim.verilog.plain_names import plain_names

__all__ = ["PINS", "VERILOG", "SynthesisSources", "behind_pins", "ecp5_design", "machine_design", "ports_only",
           "verilog_design"]

_HERE = Path(__file__).parent

VERILOG = "design.v"
"""The file with all modules of the coprocessor."""

PINS = "tilewright_pins"
"""The top of a design whose ports are shift registers."""

_ECP5_MULTIPLIERS = "ecp5_multipliers.v"
_ECP5_MODULES = {"ecp5_multipliers": "*multipliers", "ecp5_pairs": "*pairs", "ecp5_tile_factors": "*tile_factors",
                 "ecp5_product": "*_product"}
"""Modules of that file, DSP blocks with their registers, and which modules of the gateware give way to them."""

_CORE_REGISTERS = "cv32e40x_register_file"
_ECP5_REGISTERS = "ecp5_register_file"
"""The core's register file, and what takes its place: modules, each in a file of its name."""


@dataclass(frozen=True, slots=True)
class SynthesisSources:
    """A design to synthesise: its sources, and the commands that read them.

    Attributes
    ----------
    name : str
        For titles.
    top : str
        Top module.
    files : mapping of str to str or Path
        Sources by the names under which ``read`` finds them.
    read : str
        Yosys commands that read them.
    clock : str
        Its clock input.
    """

    name: str
    top: str
    files: Mapping[str, str | Path]
    read: str
    clock: str = "clk"

    @property
    def lines(self) -> SourceLines:
        """Return which block each line belongs to."""
        return SourceLines(VERILOG, str(self.files[VERILOG]))


def verilog_design(name: str, text: str, top: str) -> SynthesisSources:
    """Return the design that is one text of Verilog."""
    return SynthesisSources(name, top, {VERILOG: plain_names(text)}, f"read_verilog {VERILOG}\n")


def machine_design(machine: Machine, *, with_core: bool) -> SynthesisSources:
    """Return the coprocessor of ``machine`` behind its CV-X-IF adapter, or core and coprocessor.

    The core's memories are outside.
    """
    alone = verilog_design(machine.name, coprocessor_verilog(machine), "coprocessor")
    if not with_core:
        return alone
    sources = [*core_sources(), *system_sources()]
    read = (f"read_slang -j 1 --top tilewright_soc -G BUS_BYTES={machine.bus_bytes} "
            f"{' '.join(path.name for path in sources)} ports.v\n")
    ports = ports_only(str(alone.files[VERILOG]), alone.top)
    return SynthesisSources(f"{machine.name} with CV32E40X", "tilewright_soc",
                  {**alone.files, **{path.name: path for path in sources}, "ports.v": ports}, read + alone.read)


def ports_only(text: str, module: str) -> str:
    """Return one module of Verilog that Yosys wrote, with its ports alone: slang wants to know what is read later."""
    found = re.search(rf"^(module {module} ?\(.*?\);)(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"Verilog must have the module {module!r}, and lacks it")
    header, body = found.groups()
    ports = [line for line in body.splitlines() if re.match(r"\s*(input|output)\b", line)]
    return "\n".join(["(* blackbox *)", header, *ports, "endmodule", ""])


def behind_pins(design: SynthesisSources, oscillator: str = "") -> SynthesisSources:
    """Return the design with shift registers at its ports, so that five pins do: clock, reset, in, take and out.

    Verilog of an ``oscillator`` that drives the clock takes the place of its pin.

    Its inputs come out of one register that shifts every cycle. Its outputs go into another, all at once while ``take``
    is high, and shift out of it.
    """
    inputs, outputs = _ports(str(design.files[VERILOG]), design.top)
    given = {name: bits for name, bits in inputs.items() if name not in (design.clock, "rst")}
    wires, connections = [], [f".{name}({name})" for name in inputs if name not in given]
    for register, ports in (("given", given), ("made", outputs)):
        at = 0
        for name, bits in ports.items():
            connections.append(f".{name}({register}[{at} +: {bits}])")
            at += bits
        wires.append(at)
    text = f"""\
module {PINS}({"" if oscillator else f"input {design.clock}, "}input rst, input in, input take, output out);
  {f"wire {design.clock}; {oscillator}" if oscillator else ""}
  reg [{wires[0] - 1}:0] given;
  reg [{wires[1] - 1}:0] seen;
  wire [{wires[1] - 1}:0] made;
  assign out = seen[{wires[1] - 1}];
  always @(posedge {design.clock}) begin
    given <= {{given, in}};
    seen <= take ? made : {{seen, 1'b0}};
  end
  {design.top} {design.top}({", ".join(connections)});
endmodule
"""
    file = f"{PINS}.sv"
    return SynthesisSources(design.name, PINS, {**design.files, file: text},
                            f"{design.read}read_verilog -sv {file}\n", design.clock)


def _ports(text: str, module: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the inputs and the outputs of a module of Verilog that Yosys wrote, and how many bits each has."""
    found: dict[str, dict[str, int]] = {"input": {}, "output": {}}
    for line in ports_only(text, module).splitlines():
        if port := re.match(r"\s*(input|output)\s+(?:reg |wire )?(?:\[(\d+):0\] )?(\w+);", line):
            found[port[1]][port[3]] = int(port[2] or 0) + 1
    return found["input"], found["output"]


def ecp5_design(design: SynthesisSources) -> SynthesisSources:
    """Return the design with multipliers in the DSP blocks of an ECP5, with the blocks' own registers.

    A core's registers go to LUT RAM.
    """
    files = {_ECP5_MULTIPLIERS: _HERE / _ECP5_MULTIPLIERS}
    read = "".join((f"read_verilog {_ECP5_MULTIPLIERS}\n",
                    *(f"chtype -set {module} t:{ours}\n" for module, ours in _ECP5_MODULES.items())))
    registers: dict[str, str | Path] = {}
    if f"{_CORE_REGISTERS}.sv" in design.files:
        text = (_HERE / f"{_ECP5_REGISTERS}.sv").read_text(encoding="utf-8")
        registers[f"{_CORE_REGISTERS}.sv"] = text.replace(f"module {_ECP5_REGISTERS}", f"module {_CORE_REGISTERS}")
    return SynthesisSources(design.name, design.top, {**design.files, **files, **registers}, design.read + read)
