"""Energy of a netlist from its activity and its library: switching, internal, clock, leakage.

    switching = Σ nets  ½ C V² · toggles
    internal  = Σ outputs  Σ inputs  rise energy · rises + fall energy · falls,  and what input pins cost by themselves

Liberty's tables of rise and fall are energies of one transition each, looked up at the slew of the input that caused it
and the load of the output. A register's output arc comes on top of what its clock pin costs in every cycle.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.hardware.gates.cells.liberty import Arc, Pin
from tilewright.hardware.gates.electrical import Electrical
from tilewright.hardware.gates.events import Activity
from tilewright.hardware.gates.netlist import Instance, Netlist

__all__ = ["NetlistEnergy", "energy_of", "register_cycles", "register_toggles"]


@dataclass(frozen=True, slots=True)
class NetlistEnergy:
    """Energy of a netlist over ``cycles`` cycles, in pJ; ``leakage`` is a power, in nW.

    ``clock`` is what the clock net and the registers' clock pins take; ``switching`` and ``internal`` are the rest.
    """

    cycles: int
    switching: float
    internal: float
    clock: float
    leakage: float

    @property
    def dynamic(self) -> float:
        """All but leakage, in pJ."""
        return self.switching + self.internal + self.clock

    @property
    def per_cycle(self) -> float:
        """Dynamic energy per cycle, in pJ."""
        return self.dynamic / self.cycles


def energy_of(netlist: Netlist, activity: Activity, electrical: Electrical) -> NetlistEnergy:
    """Return what ``activity`` costs."""
    half = 0.5 * netlist.library.voltage**2
    by_net = half * electrical.loads * activity.toggles
    clocks = _clock_nets(netlist)
    clock = float(by_net[list(clocks)].sum())
    internal = 0.0
    for instance in netlist.instances:
        for pin in instance.cell.pins.values():
            net = instance.nets.get(pin.name)
            if net is None or not pin.energies or (activity.toggles[net] == 0):
                continue
            if pin.is_output:
                energy = _output(instance, pin, net, activity, electrical)
            else:
                energy = _input(instance, pin, net, activity, electrical)
            if net in clocks:
                clock += energy
            else:
                internal += energy
    switching = float(by_net.sum() - by_net[list(clocks)].sum())
    return NetlistEnergy(activity.cycles, switching, internal, clock, netlist.leakage)


def _clock_nets(netlist: Netlist) -> frozenset[int]:
    """Return the net of the clock and those that are made of it by clock gates."""
    gated = {instance.nets[pin.name] for instance in netlist.instances if instance.ideal
             for pin in instance.cell.outputs}
    return frozenset({netlist.clock, *gated})


def _output(instance: Instance, pin: Pin, net: int, activity: Activity, electrical: Electrical) -> float:
    key = instance.name, pin.name
    if key not in activity.rises:  # a flip-flop or latch: half of its changes rise
        arcs = [arc for arc in pin.energies if not arc.related or arc.related in instance.nets]
        storage = instance.cell.storage
        assert storage is not None
        clocked = [arc for arc in arcs if arc.related == storage.clock.strip("()! ")] or arcs
        means = [arc.mean(*electrical.look_up(arc, instance, net)) for arc in clocked]
        return float(activity.toggles[net]) * sum(means) / len(means) if means else 0.0
    energy = 0.0
    for place, cause in enumerate(instance.cell.inputs):
        rises, falls = activity.rises[key][place], activity.falls[key][place]
        if rises or falls:
            arcs = [arc for arc in pin.energies if arc.related == cause.name]
            energy += _mean(arcs, instance, net, electrical, int(rises), int(falls))
    return energy


def _mean(arcs: list[Arc], instance: Instance, net: int, electrical: Electrical, rises: int, falls: int) -> float:
    """Return the energy of rises and falls; with several arcs (``when``) their mean."""
    energies = []
    for arc in arcs:
        at = electrical.look_up(arc, instance, net)
        energies.append(rises * (arc.rise(*at) if arc.rise else 0.0) + falls * (arc.fall(*at) if arc.fall else 0.0))
    return sum(energies) / len(energies) if energies else 0.0


def _input(instance: Instance, pin: Pin, net: int, activity: Activity, electrical: Electrical) -> float:
    """Return what changes at an input cost by themselves, whatever the output does."""
    means = [arc.mean(*electrical.look_up(arc, instance, net, pin.name)) for arc in pin.energies]
    return float(activity.toggles[net]) * sum(means) / len(means)


def register_toggles(netlist: Netlist, activity: Activity) -> int:
    """Return how many register bits changed: each flip-flop's output, which moves at most once in a cycle."""
    nets = [instance.nets[pin.name] for instance in netlist.flops for pin in instance.cell.outputs
            if pin.name in instance.nets]
    return int(activity.toggles[np.array(nets, int)].sum()) if nets else 0


def register_cycles(netlist: Netlist, activity: Activity) -> int:
    """Return, summed over the flip-flops, in how many cycles their clock rose."""
    clocks = [instance.nets[instance.cell.storage.clock.strip("()! ")] for instance in netlist.flops
              if instance.cell.storage is not None]
    return int(activity.toggles[np.array(clocks, int)].sum()) // 2 if clocks else 0
