"""From Verilog to a netlist of a library's cells, by Yosys: flat, with the names of the registers kept.

Memories are left whole: a netlist is the logic around them, and their ports are borders of it (see `netlist`); so are
those of modules that are cut out.
Optionally each set of registers with one enable gets a clock gate, a latch and an AND.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import ToolError
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder, yosys_command

__all__ = [
    "CLOCK_GATE", "GATED_REGISTERS", "GATE_CELL", "LibraryTraits", "MappingError", "excerpt", "map_verilog",
    "plain_name", "plain_verilog",
]

GATE_CELL = "TILEWRIGHT_CLOCK_GATE"
"""A clock gate in the netlist: pins ``CE``, ``CLK``, ``GCLK``. `cells` says of which cells it consists."""

GATED_REGISTERS = 8
"""Registers that must share an enable for a clock gate to be put in: with fewer, the gate costs what it saves."""

_NETLIST = "netlist.json"
"""The file that the script writes."""

_KEYWORDS = frozenset("""always and assign begin buf case config default design disable else end event for force if
initial inout input integer join library module nand negedge nor not or output parameter posedge primitive real reg
repeat scalared signed small specify strong0 strong1 supply0 supply1 table task time tri use wait wand weak0 weak1 while
wire wor xnor xor""".split())
"""Words of Verilog that may well be names of Amaranth's."""

_ESCAPED = re.compile(r"\\(\S+) ")
_PLAIN = re.compile(r"\W")
_MODULE = re.compile(r"^module (\w+) ?\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"\s*(?:input|output) ")
_CHILD = re.compile(r"^\s*(\w+)\s+\w+\s*\($", re.MULTILINE)

_SCRIPT = """\
{read}
{cut}
synth -top {top} -flatten -nofsm -noshare -run :fine
setattr -unset init w:*
opt -fast -full
opt -undriven -fine
techmap
opt -fast
{gate}
dfflibmap {unused} -liberty cells.lib
abc {unused} -D 10000 -constr abc.constr -liberty cells.lib
opt_clean
delete t:$scopeinfo
write_json netlist.json
"""

CLOCK_GATE = """\
techmap -map enabled.v
simplemap
opt_merge
opt_clean
clockgate -pos {cell} CE:CLK:GCLK -min_net_size {least}
"""

_ENABLED = "".join(f"""\
module \\$_SDFFE_P{polarity}{value}P_ (input C, R, E, D, output Q);
  \\$_DFFE_PP_ _TECHMAP_REPLACE_ (.C(C), .E(E | {reset}), .D({data}), .Q(Q));
endmodule
""" for polarity, reset in (("P", "R"), ("N", "~R")) for value, data in ((0, f"D & ~({reset})"), (1, f"D | {reset}")))
"""Replacements of registers with an enable and a reset: clockgate skips registers with a reset."""


class MappingError(ToolError):
    """Yosys could not map a block."""


def plain_name(name: str) -> str:
    """Return a name of letters, digits and underscores alone, different for different names.

    Yosys' abc fails on others. Words of the language, which Verilog lets one escape, get a mark at the end.
    """
    return _PLAIN.sub(lambda match: f"_{ord(match[0]):02x}_", name) + ("_20_" if name in _KEYWORDS else "")


def plain_verilog(text: str) -> str:
    """Return Verilog with every escaped identifier replaced by :func:`plain_name` of it."""
    return _ESCAPED.sub(lambda match: plain_name(match[1]) + " ", text)


def excerpt(verilog: str, top: str, cut: tuple[str, ...]) -> str:
    """Return the modules that ``top`` contains, and only the ports of those in ``cut``.

    Raises
    ------
    MappingError
        If there is no such module.
    """
    texts = {match[1]: match[0] for match in _MODULE.finditer(verilog)}
    if missing := [name for name in (top, *cut) if name not in texts]:
        raise MappingError(f"Verilog must have the module {missing[0]}, and has none")
    wanted, kept = [top], {}
    while wanted:
        name = wanted.pop()
        if name in kept:
            continue
        if name in cut:
            head, _, body = texts[name].partition(";\n")
            ports = (line for line in body.splitlines(keepends=True) if _PORT.match(line))
            kept[name] = "".join([f"{head};\n", *ports, "endmodule\n"])
        else:
            kept[name] = texts[name]
            wanted += [match[1] for match in _CHILD.finditer(texts[name]) if match[1] in texts]
    return "".join(kept[name] for name in texts if name in kept)


def map_verilog(verilog: str, top: str, library: Path, *, gated: bool, read: str = "read_verilog block.v",
                files: tuple[Path, ...] = (), cut: tuple[str, ...] = ()) -> Path:
    """Return the netlist of module ``top`` in Yosys' JSON, made now or by an earlier call.

    Parameters
    ----------
    verilog : str
        Source, as :func:`plain_verilog` makes it; ``block.v`` in ``read``.
    top : str
    library : Path
        Liberty file.
    gated : bool
        Put in clock gates.
    read : str
        Yosys commands that read the source.
    files : tuple of Path
        Further files that ``read`` names, by their own names.
    cut : tuple of str
        Modules to leave out: their ports become borders of the netlist.

    Raises
    ------
    MappingError
        If Yosys fails, or the library is none that we know.
    """
    traits = _traits_of(library)
    script = _SCRIPT.format(
        read=read, cut=f"blackbox {' '.join(cut)}" if cut else "", top=top,
        gate=CLOCK_GATE.format(cell=GATE_CELL, least=GATED_REGISTERS) if gated else "",
        unused=" ".join(f"-dont_use {name}" for name in traits.unused))
    texts = {"map.ys": script, "block.v": verilog, "abc.constr": _ABC_CONSTRAINTS.format(driver=traits.driver),
             **({"enabled.v": _ENABLED} if gated else {})}
    key = hashlib.sha256("\n".join((*texts.values(), *(file.name for file in files))).encode())
    for file in (library, *files):
        key.update(file.read_bytes())
    folder = cache_folder() / "gates" / "netlists" / key.hexdigest()
    if not (folder / _NETLIST).exists():
        _run_yosys(folder, texts, {"cells.lib": library, **{file.name: file for file in files}},
                   f"{top} to the cells of {library.name}")
    return folder / _NETLIST


def _run_yosys(folder: Path, texts: Mapping[str, str], files: Mapping[str, Path], what: str) -> None:
    """Map ``what`` in a folder of texts and copied files; it becomes ``folder`` when the netlist is written."""
    # A folder of its own and relative names: Yosys in WebAssembly does not see all of the file system.
    draft = folder.with_name(f"{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for name, text in texts.items():
        write_if_changed(draft / name, text)
    for name, file in files.items():
        shutil.copy(file, draft / name)
    done = subprocess.run([*yosys_command(), "-q", "-l", "map.log", "map.ys"], cwd=draft, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0 or not (draft / _NETLIST).exists():
        said = done.stderr.strip().splitlines() or ["no message"]
        raise MappingError(f"Yosys could not map {what}: {said[-1]}; the log is {draft / 'map.log'}")
    for name in ("cells.lib", "block.v"):
        (draft / name).unlink()
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


@dataclass(frozen=True, slots=True)
class LibraryTraits:
    """Facts of a library for mapping: the cell that drives the inputs, and those that logic must not be made of."""

    driver: str
    unused: tuple[str, ...] = ()


_LIBRARIES = (
    # Unused: three-state buffers, and those of the clock.
    LibraryTraits("BUFX2", ("TBUFX1", "TBUFX2", "CLKBUF1", "CLKBUF2", "CLKBUF3")),
    LibraryTraits("sky130_fd_sc_hd__buf_2"),
)

_ABC_CONSTRAINTS = "set_driving_cell {driver}\nset_load 0.02\n"
"""The cell that drives the inputs, and pF at the outputs: with them abc inserts buffers where fan-out is high."""


def _traits_of(library: Path) -> LibraryTraits:
    """Return what mapping must know of the library at ``library``, by the cells that it has.

    Raises
    ------
    MappingError
        If it is none of those that we know.
    """
    text = library.read_text(encoding="utf-8")
    for each in _LIBRARIES:
        if re.search(rf"^\s*cell \(\"?{each.driver}\"?\)", text, re.MULTILINE):
            return each
    raise MappingError(f"Library {library.name} must have one of the cells "
                       f"{', '.join(each.driver for each in _LIBRARIES)} to drive inputs, and has none")
