"""Loads, slews and delays of a netlist before layout: the load of each net, and how fast it switches.

A net's load is the capacitance of the pins it drives, and of a wire if one is assumed for each of them. Slews are
propagated from the borders through the cells' tables, as a mean over inputs and over rise and fall.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.hardware.gates.cells.liberty import Arc, Library
from tilewright.hardware.gates.netlist import Instance, Netlist

__all__ = ["BORDER_LOAD", "BORDER_SLEW", "Electrical", "electrical_of"]

BORDER_SLEW = 0.1
"""Nanoseconds, of inputs and of the clock."""

BORDER_LOAD = 0.02
"""Picofarads at each output, as `mapping.ABC_CONSTRAINTS` has it."""

_PASSES = 3
"""Slews hang on slews; after three passes over the netlist they change no more."""


@dataclass(frozen=True, slots=True)
class Electrical:
    """Loads in pF and slews in ns by net."""

    library: Library
    loads: np.ndarray
    slews: np.ndarray

    def look_up(self, arc: Arc, instance: Instance, net: int, related: str = "") -> tuple[float, float]:
        """Return slew and load for the tables of an arc, in the library's units."""
        pin = related or arc.related
        slew = self.slews[instance.nets[pin]] if pin in instance.nets else BORDER_SLEW
        return float(slew) / self.library.nanoseconds, float(self.loads[net]) / self.library.picofarads

    def delay(self, instance: Instance, pin: str) -> float:
        """Return the delay in ns to an output, the mean over its arcs; 0 if the library has none."""
        net = instance.nets[pin]
        arcs = [arc for arc in instance.cell.pins[pin].delays if arc.related in instance.nets]
        delays = [arc.mean(*self.look_up(arc, instance, net)) for arc in arcs]
        return sum(delays) / len(delays) * self.library.nanoseconds if delays else 0.0


def electrical_of(netlist: Netlist, wire: float = 0.0) -> Electrical:
    """Return loads and slews; ``wire`` is assumed pF per pin driven."""
    loads = np.zeros(netlist.nets)
    for instance in netlist.instances:
        for pin in instance.cell.inputs:
            loads[instance.nets[pin.name]] += pin.capacitance + wire
    for net, _ in netlist.outputs:
        loads[net] += BORDER_LOAD
    electrical = Electrical(netlist.library, loads, np.full(netlist.nets, BORDER_SLEW))
    for _ in range(_PASSES):
        for net, slew in _output_slews(netlist, electrical).items():
            electrical.slews[net] = slew
    return electrical


def _output_slews(netlist: Netlist, electrical: Electrical) -> Mapping[int, float]:
    """Return the slews of all outputs, from the slews there are."""
    found: dict[int, float] = {}
    for instance in netlist.instances:
        for pin in instance.cell.outputs:
            net = instance.nets.get(pin.name)
            arcs = [arc for arc in pin.slews if arc.related in instance.nets]
            if net is None or not arcs or instance.ideal:
                continue
            slews = [arc.mean(*electrical.look_up(arc, instance, net)) for arc in arcs]
            found[net] = sum(slews) / len(slews) * netlist.library.nanoseconds
    return found
