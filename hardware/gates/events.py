"""Event simulation of a netlist with delays, in C++ (events.cpp): how often every net toggles on a given stimulus.

The netlist starts from the registers' values that the RTL has; then its inputs follow the RTL's, and in every cycle its
outputs are compared with the RTL's.
"""

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.errors import ToolError
from tilewright.hardware.gates.cells.liberty import LibertyError
from tilewright.hardware.gates.cells.truth_tables import truth_table
from tilewright.hardware.gates.electrical import Electrical
from tilewright.hardware.gates.netlist import Instance, Netlist
from tilewright.tools.toolchain import ToolMissingError, cache_folder

__all__ = ["INPUT_DELAY", "PERIOD", "Activity", "EventError", "Stimulus", "simulate"]

PERIOD = 50.0
"""Nanoseconds of a clock cycle: long enough for the slowest path without placement, so that all settles."""

INPUT_DELAY = 0.5
"""Nanoseconds after the clock at which inputs change: about what a register takes."""

_GATE_INPUTS = 4
_SOURCE = Path(__file__).with_name("events.cpp")


class EventError(ToolError):
    """The simulation could not be run, or the netlist differs from the RTL."""


@dataclass(frozen=True, slots=True)
class Stimulus:
    """The RTL's activity, bit by bit (uint8).

    Attributes
    ----------
    inputs : ndarray
        Shape (cycles, inputs), in the order of the netlist's.
    outputs : ndarray
        Shape (cycles, outputs), in the order of the netlist's; -1 (int8) where the RTL does not say.
    registers : ndarray
        Shape (flip-flops,): what they hold in the first cycle.
    """

    inputs: np.ndarray
    outputs: np.ndarray
    registers: np.ndarray

    @property
    def cycles(self) -> int:
        """Cycles whose activity is counted: all but the first, which only sets the state."""
        return len(self.inputs) - 1


@dataclass(frozen=True, slots=True)
class Activity:
    """Toggles, counted over ``cycles`` cycles.

    Attributes
    ----------
    toggles : ndarray
        By net, uint32.
    rises, falls : dict of (str, str) to ndarray
        By instance and output pin of a gate: how often it rose or fell because of each of its inputs.
    """

    cycles: int
    toggles: np.ndarray
    rises: dict[tuple[str, str], np.ndarray]
    falls: dict[tuple[str, str], np.ndarray]


def simulate(netlist: Netlist, stimulus: Stimulus, electrical: Electrical) -> Activity:
    """Return the toggles of all nets.

    Raises
    ------
    EventError
        If an output differs from the RTL's in any cycle, or a cycle is too short for the netlist.
    """
    gates = [(instance, pin.name) for instance in netlist.instances if instance.cell.storage is None
             for pin in instance.cell.outputs]
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        design, drive, result = (folder / each for each in ("design", "stimulus", "result"))
        _design(netlist, gates, electrical).tofile(design)
        _drive(netlist, stimulus).tofile(drive)
        done = subprocess.run([_simulator(), design, drive, result], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EventError(f"Netlist {netlist.name} could not be simulated: {done.stderr.strip()}")
        words = np.fromfile(result, np.uint32)
    _require_equal(netlist, words[:4])
    toggles, rest = np.split(words[4:], [netlist.nets])
    rises, falls = rest.reshape(2, len(gates), _GATE_INPUTS)
    keys = [(instance.name, pin) for instance, pin in gates]
    return Activity(stimulus.cycles, toggles, dict(zip(keys, rises, strict=True)), dict(zip(keys, falls, strict=True)))


def _require_equal(netlist: Netlist, words: np.ndarray) -> None:
    late, mismatches, cycle, output = (int(word) for word in words)
    if late:
        raise EventError(f"Netlist {netlist.name} must settle within {PERIOD} ns, and did not in {late} cycles")
    if mismatches:
        names = ", ".join(f"{name}[{index}]" for name, index in netlist.outputs[output][1])
        raise EventError(f"Netlist {netlist.name} must have the outputs of the RTL; {mismatches} bits differ, first "
                         f"{names} in cycle {cycle}")


def _design(netlist: Netlist, gates: list[tuple[Instance, str]], electrical: Electrical) -> np.ndarray:
    """Return the netlist as events.cpp reads it."""
    words = [netlist.nets, netlist.clock, _picoseconds(PERIOD), _picoseconds(INPUT_DELAY), len(gates)]
    tables: dict[tuple[str, str], int] = {}
    for instance, pin in gates:
        inputs = tuple(each.name for each in instance.cell.inputs)
        if len(inputs) > _GATE_INPUTS:
            raise LibertyError(f"Cell {instance.cell.name} must have at most {_GATE_INPUTS} inputs, not {len(inputs)}")
        key = instance.cell.name, pin
        if key not in tables:
            tables[key] = truth_table(instance.cell.pins[pin].function, inputs)
        delay = 0 if instance.ideal else max(1, _picoseconds(electrical.delay(instance, pin)))
        nets = [instance.nets[each] for each in inputs]
        words += [instance.nets[pin], delay, tables[key], len(inputs), *nets, *[0] * (_GATE_INPUTS - len(nets))]
    flops = netlist.flops
    words.append(len(flops))
    for instance in flops:
        words += _storage(instance, electrical, clocked=True)
    latches = netlist.latches
    words.append(len(latches))
    for instance in latches:
        words += _storage(instance, electrical, clocked=False)
    for border in (netlist.inputs, netlist.outputs):
        words += [len(border), *(net for net, _ in border)]
    return np.array(words, np.int64).astype(np.int32)


def _storage(instance: Instance, electrical: Electrical, *, clocked: bool) -> list[int]:
    """Return a flip-flop (clock, data, output, delay, inverted) or latch (the first four)."""
    storage = instance.cell.storage
    assert storage is not None
    outputs = [pin for pin in instance.cell.outputs if pin.name in instance.nets]
    if storage.clear or storage.preset or len(outputs) != 1 or outputs[0].function.strip("() ") != storage.state:
        raise LibertyError(f"Cell {instance.cell.name} must be a flip-flop or latch with one output that is what it "
                           f"stores, without asynchronous reset")
    data = storage.data.strip("() ")
    words = [instance.nets[storage.clock.strip("() ")], instance.nets[data.lstrip("!")],
             instance.nets[outputs[0].name], max(1, _picoseconds(electrical.delay(instance, outputs[0].name)))]
    return [*words, int(data.startswith("!"))] if clocked else words


def _drive(netlist: Netlist, stimulus: Stimulus) -> np.ndarray:
    # A latch of a clock gate is open before the first edge: what it holds follows from its enable.
    latched = np.zeros(len(netlist.latches), np.int32)
    parts = [np.array([len(stimulus.inputs)]), stimulus.registers, latched, stimulus.inputs.ravel(),
             stimulus.outputs.ravel()]
    return np.concatenate([np.asarray(part, np.int32) for part in parts])


def _picoseconds(nanoseconds: float) -> int:
    return round(1000 * nanoseconds)


def _simulator() -> Path:
    """Return the compiled simulator, built now or by an earlier call."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise ToolMissingError("Simulating netlists needs a C++ compiler, which is not on PATH; install g++")
    key = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:32]
    program = cache_folder() / "gates" / "simulators" / key
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as name:
            draft = Path(name) / "events"
            done = subprocess.run([compiler, "-std=c++17", "-O2", "-o", str(draft), str(_SOURCE)], capture_output=True,
                                  text=True, check=False)
            if done.returncode != 0:
                raise EventError(f"Simulator of netlists could not be compiled: {done.stderr.strip()}")
            draft.replace(program)
    return program
