"""The technology file of a calibration: prices, with their sources and ranges, as TOML.

Prices are per register as elaborated, which is what `energy.registers` counts: a synthesiser merges some of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.energy.actions import CORE_COMPONENTS
from tilewright.hardware.calibration.process import Doubt, Process
from tilewright.hardware.calibration.processes import PROCESSES
from tilewright.hardware.calibration.record import BlockRecord, CalibrationRecord, CoreRecord, NetlistRecord
from tilewright.isa.core_names import HOST_CORE, CoreName
from tilewright.tools.templates import render

__all__ = ["technology_text"]

_REMAINDER = "energy of an idle block's clock with clock gates, of that without"
_GATED = "price with clock gates of {event}, with the clock of the registers that it enables, of the price without"
_EVENTS = {"register_toggle": "a toggle", "instruction": "an instruction"}

_MERGED = (Doubt(0.98, 1.02, "registers that synthesis merges"),)
_LEAKAGE = (Doubt(0.3, 10.0, "leakage doubles every 10 to 15 degrees; slow and fast corners"),)
_LOGIC_BEHIND = (Doubt(0.5, 2.0, "how much logic stands behind one"),)


def technology_text(found: CalibrationRecord) -> str:
    """Return the technology file of a calibration."""
    process = PROCESSES[found.technology]
    entries = [*_defaults(found.blocks, _writer(found, process))]
    for core_name, core in found.cores.items():
        entries += _core(core_name, core, process)
    for each, mark in ((found, ""), *((other, f"@{array}") for array, other in found.arrays.items())):
        for name, block in each.blocks.items():
            section = f'block."{name}{mark}"' if mark else f"block.{name}"
            entries += _block(section, block, _writer(each, process))
    return render(Path(__file__).with_name(f"{process.name}.toml.j2"), entries=entries, node=process.node)


def _writer(found: CalibrationRecord, process: Process) -> "_Writer":
    return _Writer(process, f"netlists of machine {found.machine} in {process.name}, {len(found.workloads)} windows "
                            f"of layers{process.layout_text}; docs/{process.page}")


def _block(section: str, block: BlockRecord, writer: "_Writer") -> Iterable["_WrittenEntry"]:
    """Yield the entries of a block."""
    yield writer.price(section, "register_cycle", block.clock_per_register, _MERGED)
    yield writer.price(section, "register_toggle", block.prices["register_toggle"], _held_out(block.held_out))
    yield from writer.gating(f"{section}.", block, "register_toggle")


@dataclass(frozen=True, slots=True)
class _WrittenEntry:
    """An entry of the file: its section, its figure under ``key``, and all that is said of it."""

    section: str
    key: str
    value: float
    effect: str
    kind: str
    source: str
    relative: Sequence[Doubt]
    absolute: Sequence[Doubt]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes entries of a process, whose source is the run ``run``."""

    process: Process
    run: str

    def price(self, section: str, event: str, value: float, relative: Sequence[Doubt],
              scaled: str = "") -> _WrittenEntry:
        """Return the entry of an event's price; ``scaled`` says from which figures it is one, if it is not measured."""
        priced = self.process.events[event]
        return self.entry(f"{section}.{event}", "pJ", value, priced.effect, relative, priced.doubts, scaled)

    def entry(self, section: str, key: str, value: float, effect: str, relative: Sequence[Doubt],
              absolute: Sequence[Doubt] = (), scaled: str = "") -> _WrittenEntry:
        """Return an entry."""
        return _WrittenEntry(section, key, value, effect, "scaled" if scaled else "measured", scaled + self.run,
                             relative, absolute)

    def gating(self, prefix: str, record: NetlistRecord, event: str) -> Iterable[_WrittenEntry]:
        """Yield what clock gates leave of the clock and of ``event``'s price; nothing without gates."""
        gates = record.with_gates
        if gates is None:
            return
        yield self.entry(f"{prefix}gating", "remainder", gates.idle_clock / record.idle_clock, _REMAINDER, ())
        yield self.entry(f"{prefix}gated_price", "factor", gates.price.price / record.prices[event],
                         _GATED.format(event=_EVENTS[event]), _held_out(gates.held_out))


def _held_out(errors: Mapping[str, float]) -> tuple[Doubt, ...]:
    """Return the range that holds every window, each with prices fitted to the others."""
    ratios = [1 / (1 + error) for error in errors.values()]
    return (Doubt(min(1.0, *ratios), max(1.0, *ratios), f"largest errors with a window left out, of {len(ratios)}"),)


def _defaults(blocks: Mapping[str, BlockRecord], writer: _Writer) -> Iterable[_WrittenEntry]:
    """Yield the entries that hold for blocks without their own."""
    cycles = [block.clock_per_register for block in blocks.values()]
    toggles = [block.prices["register_toggle"] for block in blocks.values()]
    cycle = sum(cycles) / len(cycles)
    # The geometric mean lies as far from the lowest as from the highest.
    toggle = (min(toggles) * max(toggles)) ** 0.5
    differ, mean = "blocks differ by as much", "mean of the blocks measured: "
    yield writer.price("price", "register_cycle", cycle, _extremes(cycles, cycle, differ), mean)
    yield writer.price("price", "register_toggle", toggle, _extremes(toggles, toggle, differ),
                       "between the blocks measured: ")
    leakage = sum(block.leakage_nw for block in blocks.values())
    yield writer.entry("leakage", "per_register_nW",
                       leakage / sum(block.elaborated_registers for block in blocks.values()),
                       "leakage of one register with its share of the logic", _LOGIC_BEHIND, _LEAKAGE)
    gated = [(block, block.with_gates) for block in blocks.values() if block.with_gates is not None]
    if not gated:
        return
    shares = [gates.idle_clock / block.idle_clock for block, gates in gated]
    factors = [gates.price.price / block.prices["register_toggle"] for block, gates in gated]
    share, factor = sum(shares) / len(shares), sum(factors) / len(factors)
    # For blocks that were not measured: anything between the extremes, and at most all that there is.
    low, high = min(*shares, share / 2), min(1.0, max(*shares, 2 * share))
    why = f"blocks differ; {len(shares)} measured"
    yield writer.entry("gating", "remainder", share, _REMAINDER, (Doubt(low / share, high / share, why),), scaled=mean)
    yield writer.entry("gated_price", "factor", factor, _GATED.format(event=_EVENTS["register_toggle"]),
                       _extremes(factors, factor, why), scaled=mean)


def _extremes(values: Sequence[float], middle: float, reason: str) -> tuple[Doubt, ...]:
    """Return the range around ``middle``; a price that a fit has left at 0 is no lowest factor."""
    return (Doubt(min(value for value in values if value > 0) / middle, max(values) / middle, reason),)


def _core(name: CoreName, core: CoreRecord, process: Process) -> Iterable[_WrittenEntry]:
    """Yield the entries of a RISC-V core; the instructions of CV32E40X are those of every core without its own."""
    writer = _Writer(process, f"netlist of {name.upper()} in {process.name}, {len(core.windows)} windows of programs"
                              f"{process.layout_text}; docs/{process.page}")
    component = f"block.{CORE_COMPONENTS[name]}"
    why = f"programs differ: extremes of {len(core.windows)} windows, each held out"
    yield writer.price("price" if name == HOST_CORE else component, "instruction", core.prices["instruction"],
                       (Doubt(*core.instruction_range, why),))
    yield writer.price(component, "register_cycle", core.clock_per_register, _MERGED)
    yield from writer.gating(f"{component}.", core, "instruction")
