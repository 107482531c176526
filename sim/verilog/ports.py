"""Verilog for other tools: plain names, no unused wires, memories that also start at zero in simulation.

The same gateware as `elaborate.verilog_of` gives the simulators, but as those who read it and run lint over it expect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.sim.verilog.elaborate import ElaborationError, verilog_of
from tilewright.sim.verilog.modular.modules import Modules
from tilewright.sim.verilog.plain_names import plain_names

__all__ = ["Port", "packaged", "ports_of"]

# Wires that only repeat others go, and so do bits of sums that nobody reads. The simulators do without these passes.
# Registers get enables and resets in place of selections without a name, but where Verilator 5.006 would see loops in
# vectors: it does not tell their bits apart.
_SCRIPT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
proc -norom
opt_clean -purge
opt_expr -fine
opt_dff -simple-dffe * coprocessor_weight_transform %d coprocessor_window_steps %d
opt_merge
wreduce
opt_expr
opt_clean -purge
memory_collect
opt_clean -purge
write_verilog -noattr
"""

# A comment that some tools obey and others warn of; the attribute is the standard's way to say it.
_PARALLEL = re.compile(r"^(\s+)(casez? \(\w+\)) // synopsys parallel_case$", re.MULTILINE)
_INITIALISED = re.compile(r"^(\s+reg (?:signed )?(?:\[\d+:\d+\] )?)(\w+) = ([^;]+);$", re.MULTILINE)
_MEMORY = re.compile(r"^  reg (?:signed )?\[(\d+):0\] (\w+) \[(\d+):0\];\n  initial begin\n(.*?)  end\n",
                     re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a Verilog module."""

    name: str
    width: int
    is_input: bool


def packaged(design: Modules, name: str) -> str:
    """Return ``design`` as Verilog-2005 for others; ``name`` is its top module.

    Each module has its class's contract above it. What has no name in the source is numbered in each module alone.

    Raises
    ------
    ElaborationError
        If Yosys fails, or a memory starts with anything but zeros: a package must not depend on it.
    ToolMissingError
        If there is no Yosys.
    """
    text = plain_names(verilog_of(design.rtlil, name, _SCRIPT))
    text = text[text.index("\nmodule "):].lstrip("\n")  # without the name of Yosys' build
    text = _PARALLEL.sub(r"\1(* parallel_case *)\n\1\2", text)
    text = _INITIALISED.sub(r"\1\2;\n  initial \2 = \3;", text)
    return _explained(_MEMORY.sub(_zeroed, text), design.contracts)


def _explained(text: str, contracts: Mapping[str, str]) -> str:
    """Return ``text`` with each module's contract above it."""
    def commented(found: re.Match[str]) -> str:
        lines = contracts.get(found[1], "").splitlines()
        return "".join(f"// {line}".rstrip() + "\n" for line in lines) + found[0]

    return re.sub(r"^module (\w+)\(", commented, text, flags=re.MULTILINE)


def ports_of(text: str, module: str) -> tuple[Port, ...]:
    """Return the ports of ``module`` in Verilog as Yosys writes it, in the order of their declarations.

    Raises
    ------
    ValueError
        If there is no such module.
    """
    found = re.search(rf"^module {module}\(.*?\);(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"Verilog text must have a module {module!r} with a list of ports")
    declared = re.findall(r"^\s*(input|output)\s+(?:\[(\d+):0\]\s*)?(\w+)\s*;", found[1], re.MULTILINE)
    return tuple(Port(name, int(high or 0) + 1, direction == "input") for direction, high, name in declared)


def _zeroed(memory: re.Match[str]) -> str:
    """Return the declaration of a memory that simulators, which would start it unknown, set to zero."""
    high, name, last, words = memory.groups()
    if words.strip():
        raise ElaborationError(f"Memory {name} of a Verilog package must start at zero, not with "
                               f"{words.strip()[:60]!r}")
    return (f"  reg [{high}:0] {name} [0:{last}];\n"
            f"`ifndef SYNTHESIS\n"
            f"  initial begin : zero_of_{name}\n"
            f"    integer word;\n"
            f"    for (word = 0; word <= {last}; word = word + 1) {name}[word] = {int(high) + 1}'h0;\n"
            f"  end\n"
            f"`endif\n")
