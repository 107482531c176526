"""Measure a part of the machine on a window of a run: its energy at gate level, and the inputs of the model."""

import ast
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from tilewright.hardware.gates import electrical, events, power, stimulus
from tilewright.hardware.gates.cells.liberty import Library
from tilewright.hardware.gates.netlist import Netlist, read_netlist
from tilewright.hardware.gates.waves import Waves
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder

__all__ = ["Measurement", "Meter", "total"]

_FOLDER = Path(__file__).parent
_CODE = ("electrical", "events", "cells/truth_tables", "cells/liberty", "netlist", "power", "stimulus")
"""Modules that a measurement hangs on."""


_IDLE_CYCLES = 20
"""Cycles of :meth:`Meter.idle_clock`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One part over ``cycles`` cycles.

    Attributes
    ----------
    registers : int
        Flip-flops in the netlist.
    register_cycles : int
        Flip-flops times cycles in which their clock ran: all, but for those behind a clock gate that was shut.
    register_toggles : int
        How often a flip-flop changed.
    switching, internal, clock : float
        Energy in pJ.
    leakage : float
        In nW.
    area : float
        In µm², of cells alone.
    cells : int
    """

    cycles: int
    registers: int
    register_cycles: int
    register_toggles: int
    switching: float
    internal: float
    clock: float
    leakage: float
    area: float
    cells: int

    @property
    def energy(self) -> float:
        """Dynamic energy in pJ."""
        return self.switching + self.internal + self.clock

    def __add__(self, other: "Measurement") -> "Measurement":
        """Return the two parts together, over the same cycles."""
        if self.cycles != other.cycles:
            raise ValueError(f"Parts must be measured over as many cycles, not {self.cycles} and {other.cycles}")
        mine, others = asdict(self), asdict(other)
        return Measurement(**{name: mine[name] + others[name] for name in mine} | {"cycles": self.cycles})


def total(measurements: Iterable[Measurement]) -> Measurement:
    """Return all parts together."""
    first, *rest = measurements
    for each in rest:
        first = first + each
    return first


class Meter:
    """Measures one netlist; what is the same for every window is made once.

    Parameters
    ----------
    path : Path
        As `mapping.map_verilog` returns it.
    module : str
    library : Library
    wire : float
        Capacitance in pF assumed for the wire to each pin.
    """

    def __init__(self, path: Path, module: str, library: Library, wire: float = 0.0, clock: str = "clk") -> None:
        self._path = path
        self._module = module
        self._library = library
        self._wire = wire
        self._clock = clock
        self._made: tuple[Netlist, electrical.Electrical] | None = None

    @property
    def netlist(self) -> Netlist:
        """The netlist."""
        return self._ready()[0]

    def measure(self, waves: Waves, scope: str) -> Measurement:
        """Return the energy of the part in ``scope``.

        Raises
        ------
        EventError
            If the netlist does not do what the RTL did.
        WaveError
            If the waveform is not of this RTL.
        """
        netlist, loads = self._ready()
        driven = stimulus.stimulus_of(netlist, waves, scope)
        activity = events.simulate(netlist, driven, loads)
        energy = power.energy_of(netlist, activity, loads)
        return Measurement(
            cycles=activity.cycles, registers=len(netlist.flops),
            register_cycles=power.register_cycles(netlist, activity),
            register_toggles=power.register_toggles(netlist, activity), switching=energy.switching,
            internal=energy.internal, clock=energy.clock, leakage=energy.leakage, area=netlist.area,
            cells=len(netlist.instances))

    def measure_kept(self, name: str, read: Callable[[], Waves], scope: str) -> Measurement:
        """Return the same, from the cache if it is there; ``name`` stands for the waveform that ``read`` returns."""
        key = hashlib.sha256("\n".join((self._path.parent.name, name, scope, str(self._wire), _code())).encode())
        kept = cache_folder() / "gates" / "measured" / f"{key.hexdigest()}.json"
        if not kept.exists():
            write_if_changed(kept, json.dumps(asdict(self.measure(read(), scope))))
        return Measurement(**json.loads(kept.read_text()))

    def idle_clock(self) -> float:
        """Return the clock's pJ per cycle while nothing happens: registers and inputs zero, as after a reset."""
        key = hashlib.sha256(f"{self._path.parent.name} {self._wire} idle, no reset {_IDLE_CYCLES} {_code()}".encode())
        kept = cache_folder() / "gates" / "measured" / f"{key.hexdigest()}.json"
        if not kept.exists():
            write_if_changed(kept, json.dumps(self._idle_clock()))
        return float(json.loads(kept.read_text()))

    def _idle_clock(self) -> float:
        netlist, loads = self._ready()
        cycles = _IDLE_CYCLES + 1
        high = [("rst_n", 0) in names for _, names in netlist.inputs]
        nothing = events.Stimulus(
            np.tile(np.array(high, np.uint8), (cycles, 1)),
            np.full((cycles, len(netlist.outputs)), stimulus.UNKNOWN, np.int8), np.zeros(len(netlist.flops), np.uint8))
        energy = power.energy_of(netlist, events.simulate(netlist, nothing, loads), loads)
        return energy.clock / energy.cycles

    def _ready(self) -> tuple[Netlist, electrical.Electrical]:
        if self._made is None:
            netlist = _connected(read_netlist(self._path, self._module, self._library, self._clock))
            self._made = netlist, electrical.electrical_of(netlist, self._wire)
        return self._made


def _connected(netlist: Netlist) -> Netlist:
    """Return the netlist without inputs that nothing in it takes, as of a memory's bits that nobody reads."""
    taken = {instance.nets[pin.name] for instance in netlist.instances for pin in instance.cell.inputs}
    taken.update(net for net, _ in netlist.outputs)
    return replace(netlist, inputs=tuple(border for border in netlist.inputs if border[0] in taken))


@cache
def _code() -> str:
    """Return a hash of the code that a measurement hangs on, as it computes: comments and line breaks aside."""
    trees = [ast.parse((_FOLDER / f"{name}.py").read_text(encoding="utf-8")) for name in _CODE]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body
                         if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    text = "".join(ast.dump(tree) for tree in trees) + (_FOLDER / "events.cpp").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()
