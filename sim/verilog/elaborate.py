"""From Amaranth to Verilog: the only connection between the simulators and the gateware."""

import gc
import hashlib
import re
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from amaranth.back import rtlil
from amaranth.lib.wiring import Component

from tilewright.errors import ToolError
from tilewright.isa.command_port import HardwarePort
from tilewright.isa.extension import BufferUnit, ExtendedMachine, StageVector, stage_of, unit_of
from tilewright.isa.machine import Machine
from tilewright.isa.registers.host_registers import WindowPins
from tilewright.sim.verilog.modular.modules import Modules, modules_of
from tilewright.sim.verilog.toggle_probes import with_probes
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder, yosys_command, yosys_identity

__all__ = [
    "ElaborationError", "bridge_modules", "coprocessor_modules", "coprocessor_rtlil", "coprocessor_verilog",
    "extension_rtlil", "stage_outputs", "unit_results", "verilog", "verilog_of", "without_initial_values",
]

# What amaranth.back.verilog runs; called here directly so that its input can be the key of a cache.
_YOSYS_SCRIPT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
proc -nomux -norom
memory_collect
write_verilog -norename
"""

# One line per word of every memory, tens of thousands of them; memories start at zero in Verilator anyway. Only what is
# in an initial block: elsewhere such a line is an assignment to one bit of a signal.
_INITIAL = re.compile(r"^  initial begin\n(?:    .*\n)*?  end\n", re.MULTILINE)
_ZERO_WORD = re.compile(r"^\s+\S+ ?\[\d+\] = \d+'[hd]0+;\n", re.MULTILINE)

_ELABORATING = threading.Lock()

_DESIGNS = 4
"""Texts of coprocessors that are kept; each is one to some megabytes."""

_REGISTER_VALUE = re.compile(r"^(  reg [^=;\n]+?) = \d+'[hd][0-9a-f]+;$", re.MULTILINE)


Made = TypeVar("Made")


class ElaborationError(ToolError):
    """Yosys did not accept a component."""


def verilog(component: Component, name: str) -> str:
    """Return ``component`` as Verilog whose top module is ``name``; see `verilog_of`."""
    return verilog_of(_rtlil(component, name), name)


def verilog_of(design: str, name: str, script: str = _YOSYS_SCRIPT) -> str:
    """Return ``design``, RTLIL as Amaranth writes it, as Verilog; ``name`` is its top module.

    Ports are the members of the component's signature, joined by ``__``: ``i__payload``, ``i__valid``. Memory
    words that start at zero are left unmentioned. The text is kept in the cache, keyed by the component's
    RTLIL, because Yosys takes seconds. ``script`` is what Yosys does, ``{rtlil}`` the design.

    Raises
    ------
    ElaborationError
        If Yosys fails.
    ToolMissingError
        If there is no Yosys.
    """
    script = script.format(rtlil=design)
    installed = f"{yosys_identity()} {_INITIAL.pattern}\n"
    kept = cache_folder() / "verilog" / f"{hashlib.sha256((installed + script).encode()).hexdigest()}.v"
    if kept.exists():
        return kept.read_text()
    done = subprocess.run([*yosys_command(), "-q", "-"], input=script, capture_output=True, text=True, check=False)
    # Yosys has been seen to stop half-way with exit status 0, and what is kept must be whole.
    if done.returncode != 0 or not done.stdout.endswith("endmodule\n"):
        raise ElaborationError(f"Yosys could not turn {name} into Verilog: {_cause(done.stderr)}")
    text = _INITIAL.sub(lambda block: _ZERO_WORD.sub("", block[0]), done.stdout)
    write_if_changed(kept, text)
    return text


def _cause(log: str) -> str:
    """Return what a tool says of its failure: the last line where it ended in a traceback of its own, or all."""
    text = log.strip()
    return text.splitlines()[-1] if "Traceback (most recent call last)" in text else text


@lru_cache(maxsize=_DESIGNS)
def coprocessor_rtlil(machine: Machine, port: HardwarePort = "cvxif", *, watched: bool = False,
                      windows: WindowPins = "pins") -> str:
    """Return the coprocessor of ``machine`` behind a port for commands as RTLIL, top module ``coprocessor``.

    ``watched`` adds the output ``events`` of `rtl.port.command_watch`. ``windows`` can be registers of ``axi4lite``.
    The last designs are kept: a package and a board ask for the same again, and each takes seconds.
    """
    return _rtlil(_coprocessor(machine, port, windows, watched=watched), "coprocessor")


def coprocessor_modules(machine: Machine, port: HardwarePort, windows: WindowPins) -> Modules:
    """Return the same with one module for each kind of block, the names of the source and each module's contract.

    Its memories are instances of `modular.memories.MEMORY`.
    """
    return _elaborated(lambda: modules_of(_coprocessor(machine, port, windows), "coprocessor", memories_apart=True))


def _coprocessor(machine: Machine, port: HardwarePort, windows: WindowPins, *, watched: bool = False) -> Component:
    # Here, because the benches of single units must not need all the others.
    from tilewright.rtl.axilite_coprocessor import AxiLiteCoprocessor
    from tilewright.rtl.split_xif_coprocessor import SplitXifCoprocessor
    from tilewright.rtl.xif_coprocessor import XifCoprocessor

    if port == "axi4lite":
        return AxiLiteCoprocessor(machine, watched=watched, windows=windows)
    return (SplitXifCoprocessor if port == "cvxif-1.0" else XifCoprocessor)(machine, watched=watched)


def coprocessor_verilog(machine: Machine, port: HardwarePort = "cvxif", *, probes: bool = False,
                        watched: bool = False) -> str:
    """Return the same as Verilog (see `verilog_of`); ``probes`` adds those of sim/verilog/toggle_probes.py."""
    design = coprocessor_rtlil(machine, port, watched=watched)
    return verilog_of(with_probes(design) if probes else design, "coprocessor")


def without_initial_values(text: str) -> str:
    """Return Verilog of `verilog_of` in which no register has a value before reset, as in silicon."""
    return _REGISTER_VALUE.sub(r"\1;", text)


def extension_rtlil(machine: ExtendedMachine) -> str:
    """Return the stage or unit of ``machine``, with Tilewright's logic around its component, as RTLIL."""
    from tilewright.rtl.array.extension_unit import ExtensionUnit
    from tilewright.rtl.buffers.activation_buffer import ActivationBuffer
    from tilewright.rtl.post.extension_stage import ExtensionStage

    if (stage := stage_of(machine)) is not None:
        return _rtlil(ExtensionStage(machine, stage), "extension")
    unit = unit_of(machine)
    assert unit is not None
    return _rtlil(ExtensionUnit(machine, unit, ActivationBuffer.LATENCY), "extension")


def stage_outputs(machine: ExtendedMachine, slots: bytes, settings: Mapping[str, int], channel: int,
                  vectors: Sequence[StageVector]) -> list[list[int]]:
    """Return the stage's results for ``vectors`` in Amaranth's simulator; see `rtl.post.stage_bench`."""
    from tilewright.rtl.post.stage_bench import run_stage

    return run_stage(machine, slots, settings, channel, vectors)


def unit_results(unit: BufferUnit, settings: Mapping[str, int], items: Sequence[Sequence[int]],
                 gaps: Sequence[int], holds: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Return results and latencies of the component of ``unit`` in Amaranth's simulator; see `rtl.array.unit_bench`."""
    from tilewright.rtl.array.unit_bench import run_unit_component

    found = run_unit_component(unit, settings, items, gaps, holds)
    return found.values, found.latencies


def bridge_modules(name: str, data_bytes: int) -> Modules:
    """Return what is between the AXI4 port and another bus as `coprocessor_modules` does.

    Parameters
    ----------
    name
        Of the top module: ``wishbone_bridge``, or ``clock_crossing`` to a bus with a clock of its own.
    data_bytes
        Width of the bus.
    """
    from tilewright.rtl.bus.clock_crossing import ClockCrossing
    from tilewright.rtl.bus.wishbone import WishboneBridge

    kinds: dict[str, type[WishboneBridge | ClockCrossing]] = {
        "wishbone_bridge": WishboneBridge, "clock_crossing": ClockCrossing}
    return _elaborated(lambda: modules_of(kinds[name](data_bytes), name))


def _rtlil(component: Component, name: str) -> str:
    """Return ``component`` as RTLIL whose top module is ``name``."""
    return _elaborated(lambda: rtlil.convert(component, name=name, emit_src=False))


def _elaborated(work: Callable[[], Made]) -> Made:
    """Return what ``work`` makes of a component.

    The collector of garbage rests meanwhile: Amaranth makes millions of objects and drops few of them, and to look at
    them again and again took half of the time. Threads elaborate one after the other, since Amaranth and the collector
    have state of the whole process.
    """
    with _ELABORATING:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return work()
        finally:
            if collecting:
                gc.enable()
