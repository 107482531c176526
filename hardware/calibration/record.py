"""The figures of a calibration in ``calibration.json``, read and written back unchanged.

Energies are in picojoules. Errors are relative: of the model, whose prices were fitted to all other windows, over the
measurement, less one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from tilewright.isa.core_names import CORES, CoreName

__all__ = [
    "BlockRecord", "BlockWindow", "CalibrationRecord", "CoreRecord", "CoreWindow", "FittedPrice", "GatedRecord",
    "NetlistRecord", "WindowRecord",
]


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """A window of a layer of a network: ``where`` 0 is the layer's begin, 1 its end."""

    model: str
    layer: int
    where: float
    what: str


@dataclass(frozen=True, slots=True)
class BlockWindow:
    """A block in a window, per cycle; ``clocked_registers`` are those with a running clock."""

    energy: float
    clock: float
    register_toggles: float
    clocked_registers: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BlockWindow":
        return cls(data["pJ_per_cycle"], data["clock_pJ_per_cycle"], data["register_toggles_per_cycle"],
                   data["clocked_registers"])

    def to_json(self) -> dict[str, Any]:
        return {"pJ_per_cycle": self.energy, "clock_pJ_per_cycle": self.clock,
                "register_toggles_per_cycle": self.register_toggles, "clocked_registers": self.clocked_registers}


@dataclass(frozen=True, slots=True)
class CoreWindow:
    """A core in a window of a program: energy and clock per cycle, and counts over all ``cycles``."""

    window: WindowRecord
    cycles: int
    retired: int
    data_accesses: int
    register_toggles: int
    energy: float
    clock: float

    @property
    def energy_per_instruction(self) -> float:
        """Energy without the clock, per instruction retired."""
        return (self.energy - self.clock) * self.cycles / self.retired

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CoreWindow":
        window = WindowRecord(data["model"], data["layer"], data["where"], data["what"])
        return cls(window, data["cycles"], data["retired"], data["data_accesses"], data["register_toggles"],
                   data["pJ_per_cycle"], data["clock_pJ_per_cycle"])

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self.window), "cycles": self.cycles, "retired": self.retired,
                "data_accesses": self.data_accesses, "register_toggles": self.register_toggles,
                "pJ_per_cycle": self.energy, "clock_pJ_per_cycle": self.clock}


@dataclass(frozen=True, slots=True)
class FittedPrice:
    """A price of one event, with the root mean square and the largest of its errors."""

    price: float
    rms: float
    largest: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "FittedPrice":
        return cls(data["pJ"], data["rms"], data["largest"])


@dataclass(frozen=True, slots=True)
class GatedRecord:
    """A netlist with clock gates.

    Attributes
    ----------
    idle_clock : float
        Energy of the clock in a cycle in which nothing happens.
    area_um2 : float
    windows : mapping of str to BlockWindow
    price : FittedPrice
        Of a toggle, or of an instruction.
    held_out : mapping of str to float
        The error of each window.
    """

    idle_clock: float
    area_um2: float
    windows: Mapping[str, BlockWindow]
    price: FittedPrice
    held_out: Mapping[str, float]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "GatedRecord | None":
        """Return the part of a netlist's record that is of clock gates, if it was measured with them."""
        if not data["gated"]:
            return None
        return cls(data["idle_clock_gated_pJ_per_cycle"], data["gated_area_um2"],
                   {name: BlockWindow.from_json(each) for name, each in data["gated"].items()},
                   FittedPrice.from_json(data["gated_price"]), data["gated_price"]["held_out"])

    def to_json(self) -> dict[str, Any]:
        price = {"pJ": self.price.price, "held_out": dict(self.held_out), "rms": self.price.rms,
                 "largest": self.price.largest}
        return {"idle_clock_gated_pJ_per_cycle": self.idle_clock, "gated_area_um2": self.area_um2,
                "gated": {name: each.to_json() for name, each in self.windows.items()}, "gated_price": price}


_NO_GATES: dict[str, Any] = {"idle_clock_gated_pJ_per_cycle": None, "gated_area_um2": None, "gated": {},
                             "gated_price": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetlistRecord:
    """A mapped netlist and the prices fitted to it.

    Attributes
    ----------
    prices : mapping of str to float
        By event; the first is ``register_cycle``, the clock's.
    held_out : mapping of str to float
        The error of each window.
    rms, largest : float
        Of these errors.
    registers, elaborated_registers : int
        Flip-flops of the netlist, and of the elaborated design: synthesis merges some.
    cells : int
    area_um2, leakage_nw : float
    idle_clock : float
        Energy of the clock in a cycle in which nothing happens.
    with_gates : GatedRecord or None
    """

    prices: Mapping[str, float]
    held_out: Mapping[str, float]
    rms: float
    largest: float
    registers: int
    elaborated_registers: int
    cells: int
    area_um2: float
    leakage_nw: float
    idle_clock: float
    with_gates: GatedRecord | None

    def _clock_per_register(self, clocks: Iterable[float]) -> float:
        return fmean(clocks) / self.elaborated_registers


def _netlist_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `NetlistRecord`."""
    return {"prices": data["prices_pJ"], "held_out": data["held_out"], "rms": data["rms"], "largest": data["largest"],
            "registers": data["registers"], "elaborated_registers": data["elaborated_registers"],
            "cells": data["cells"], "area_um2": data["area_um2"], "leakage_nw": data["leakage_nW"],
            "idle_clock": data["idle_clock_pJ_per_cycle"], "with_gates": GatedRecord.from_json(data)}


def _prices_json(record: NetlistRecord) -> dict[str, Any]:
    return {"prices_pJ": dict(record.prices), "held_out": dict(record.held_out), "rms": record.rms,
            "largest": record.largest}


def _netlist_json(record: NetlistRecord) -> dict[str, Any]:
    gates = record.with_gates.to_json() if record.with_gates else _NO_GATES
    return {"registers": record.registers, "elaborated_registers": record.elaborated_registers, "cells": record.cells,
            "area_um2": record.area_um2, "leakage_nW": record.leakage_nw,
            "idle_clock_pJ_per_cycle": record.idle_clock, **gates}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRecord(NetlistRecord):
    """A block of the machine, by window."""

    windows: Mapping[str, BlockWindow]

    @property
    def clock_per_register(self) -> float:
        """Energy of the clock per register, as elaborated, and cycle."""
        return self._clock_per_register(each.clock for each in self.windows.values())

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BlockRecord":
        windows = {name: BlockWindow.from_json(each) for name, each in data["measured"].items()}
        return cls(**_netlist_fields(data), windows=windows)

    def to_json(self) -> dict[str, Any]:
        return {**_prices_json(self), **_netlist_json(self),
                "measured": {name: each.to_json() for name, each in self.windows.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreRecord(NetlistRecord):
    """A RISC-V core, by window.

    Attributes
    ----------
    verilog : str
        Beginning of the hash of the Verilog that was mapped.
    other_prices : mapping of str to FittedPrice
        By event, a second price beside that of an instruction, and the errors with it.
    """

    verilog: str
    other_prices: Mapping[str, FittedPrice]
    windows: Mapping[str, CoreWindow]

    @property
    def clock_per_register(self) -> float:
        """Energy of the clock per register, as elaborated, and cycle."""
        return self._clock_per_register(each.clock for each in self.windows.values())

    @property
    def instruction_range(self) -> tuple[float, float]:
        """Factors from the price of an instruction to what it is in single windows, the least and the greatest.

        What the clock takes is known, so all of a window's error is the instructions': the factors are of what is left
        of its energy, measured over modelled with prices of the other windows.
        """
        factors = []
        for name, each in self.windows.items():
            modelled = each.energy * (1 + self.held_out[name])
            factors.append((each.energy - each.clock) / (modelled - each.clock))
        return min(1.0, *factors), max(1.0, *factors)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CoreRecord":
        return cls(**_netlist_fields(data), verilog=data["verilog"],
                   other_prices={event: FittedPrice.from_json(each) for event, each in data["another_price"].items()},
                   windows={name: CoreWindow.from_json(each) for name, each in data["windows"].items()})

    def to_json(self) -> dict[str, Any]:
        others = {event: {"pJ": each.price, "rms": each.rms, "largest": each.largest}
                  for event, each in self.other_prices.items()}
        return {"verilog": self.verilog, **_prices_json(self), "another_price": others, **_netlist_json(self),
                "windows": {name: each.to_json() for name, each in self.windows.items()}}


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """Everything that a calibration has measured.

    Attributes
    ----------
    technology, machine : str
    rtl : str
        Beginning of the hash of the blocks' Verilog.
    workloads : mapping of str to WindowRecord
        The blocks' windows.
    blocks : mapping of str to BlockRecord
    sum_errors, sum_errors_gated : mapping of str to float
        By window, the error of all blocks together, each with prices fitted to the other windows.
    mac_rates : mapping of str to float
        By window, multiply-accumulates per cycle of its layer, as the cycle model predicts them.
    cores : mapping of CoreName to CoreRecord
    arrays : mapping of str to CalibrationRecord
        By kind of array, the blocks that are others in a machine with it; these have no cores and no arrays.
    """

    technology: str
    machine: str
    rtl: str
    workloads: Mapping[str, WindowRecord]
    blocks: Mapping[str, BlockRecord]
    sum_errors: Mapping[str, float]
    sum_errors_gated: Mapping[str, float]
    mac_rates: Mapping[str, float]
    cores: Mapping[CoreName, CoreRecord]
    arrays: Mapping[str, "CalibrationRecord"]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CalibrationRecord":
        """Return the record that :meth:`to_json` and JSON have made into ``data``.

        Raises
        ------
        KeyError
            If a figure is missing.
        """
        sums = data["sum_of_blocks"]
        return cls(data["technology"], data["machine"], data["rtl"],
                   {name: WindowRecord(**each) for name, each in data["workloads"].items()},
                   {name: BlockRecord.from_json(each) for name, each in data["blocks"].items()},
                   sums["held_out"], sums["held_out_gated"], data["macs_per_cycle"],
                   {name: CoreRecord.from_json(data["cores"][name]) for name in CORES if name in data["cores"]},
                   {array: cls.from_json(each) for array, each in data["arrays"].items()})

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON's types."""
        return {"technology": self.technology, "machine": self.machine, "rtl": self.rtl,
                "workloads": {name: asdict(each) for name, each in self.workloads.items()},
                "blocks": {name: each.to_json() for name, each in self.blocks.items()},
                "sum_of_blocks": {"held_out": dict(self.sum_errors), "held_out_gated": dict(self.sum_errors_gated)},
                "macs_per_cycle": dict(self.mac_rates),
                "cores": {name: each.to_json() for name, each in self.cores.items()},
                "arrays": {array: each.to_json() for array, each in self.arrays.items()}}
