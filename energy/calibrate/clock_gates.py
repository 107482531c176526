"""What a netlist with clock gates takes: the clock that is left when nothing happens, and a price of what happens.

    energy = idle clock · cycles + price · events

An event carries the clock of the registers that are enabled with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.energy.gates.fit import TERMS, PriceFit, fit
from tilewright.energy.gates.measure import Measurement


@dataclass(frozen=True, slots=True)
class Gated:
    """Measurements of a netlist with clock gates by workload, pJ per cycle of its clock when idle, and the price."""

    measured: Mapping[str, Measurement]
    idle: float
    prices: PriceFit


def gated(measured: Mapping[str, Measurement], idle: float, counts: Mapping[str, Sequence[int]] | None = None,
          events: Sequence[str] = TERMS[1:]) -> Gated:
    """Return the price of events fitted to ``measured``; ``counts`` and ``events`` as for `fit.fit`."""
    apart = {name: replace(each, clock=idle * each.cycles, register_cycles=each.registers * each.cycles,
                           switching=each.energy - idle * each.cycles, internal=0.0)
             for name, each in measured.items()}
    return Gated(measured, idle, fit(apart, counts, events))
