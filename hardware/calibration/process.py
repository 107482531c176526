"""A process that can be calibrated: its cells, the effects of a layout on them, and the texts of its prices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.hardware.gates.cells.liberty import Library
from tilewright.hardware.gates.measure import Measurement, Meter
from tilewright.hardware.gates.waves import Waves
from tilewright.tools.progress import Steps

__all__ = ["Doubt", "LayoutEffects", "MeterWithLayout", "PricedEvent", "Process"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason for which a figure may be off, and the factors to its low and high bound; see `energy.prices`."""

    low: float
    high: float
    reason: str


@dataclass(frozen=True, slots=True)
class PricedEvent:
    """An event that has a price: its description in the technology file, and the price's absolute uncertainties."""

    effect: str
    doubts: tuple[Doubt, ...]


@dataclass(frozen=True, slots=True)
class LayoutEffects:
    """Additions of a layout to the energies of cells by themselves.

    Attributes
    ----------
    wire : float
        Capacitance in pF of the wire to each pin that a net drives; the clock's is not simulated with it.
    cells : float
        Factor for all but the clock: parasitics in the cells, where their library has none.
    clock : float
        The same for the clock, with its tree.
    """

    wire: float = 0.0
    cells: float = 1.0
    clock: float = 1.0

    def applied(self, bare: Measurement, wired: Measurement) -> Measurement:
        """Return a measurement as with a layout, from those without and with the wires' capacitance."""
        return replace(bare, switching=self.cells * bare.switching + wired.switching - bare.switching,
                       internal=self.cells * bare.internal + wired.internal - bare.internal,
                       clock=self.clock * bare.clock)


class MeterWithLayout:
    """Measures a netlist as `Meter` does, without and with wires, and adds what the layout does."""

    def __init__(self, path: Path, module: str, library: Library, layout: LayoutEffects) -> None:
        self._layout = layout
        self._bare = Meter(path, module, library)
        self._wired = Meter(path, module, library, layout.wire) if layout.wire else self._bare

    def measure_kept(self, name: str, read: Callable[[], Waves], scope: str) -> Measurement:
        """Return the energy of the part in ``scope`` in the waveform called ``name``, kept in the cache."""
        bare = self._bare.measure_kept(name, read, scope)
        wired = self._wired.measure_kept(name, read, scope) if self._layout.wire else bare
        return self._layout.applied(bare, wired)

    def idle_clock(self) -> float:
        """Return the clock's pJ per cycle while nothing happens."""
        return self._layout.clock * self._bare.idle_clock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A library of standard cells, and the texts of its technology file about the measured prices.

    Attributes
    ----------
    name : str
    node : str
        Node and supply, as entries have it.
    library : Callable
        Returns the path of the Liberty file, and may have to make it.
    gates : bool
        Whether the library has what clock gates are made of.
    layout : LayoutEffects
    layout_text : str
        How ``layout`` enters, as the end of a sentence about an entry; empty if there is none.
    page : str
        The page in docs/ with the errors.
    events : mapping of str to PricedEvent
        By the name of their price.
    """

    name: str
    node: str
    library: Callable[[Steps], Path]
    gates: bool
    layout: LayoutEffects
    layout_text: str
    page: str
    events: Mapping[str, PricedEvent]
