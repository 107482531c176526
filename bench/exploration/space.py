"""A space of designs: the values that each parameter may take, and the design of a choice of them."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from typing import Any

from tilewright.isa.machine import TILE_BYTES, Machine, MemoryTiming, lanes_of_a_fetch
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_file import memory_with

__all__ = ["LANES_PER_CLUSTER", "MACHINE_KEYS", "MEMORY_KEYS", "MOST_LISTED", "Choice", "Space", "Value", "design_key"]

Value = bool | int | float | str

Choice = Mapping[str, Value]
"""A value for each axis of a space."""

LANES_PER_CLUSTER = "lanes_per_cluster"
"""An axis that stands for ``clusters``: how many lanes share a weight memory, at most as many as there are lanes and
tiles in flight, so that every choice is a machine."""

MACHINE_KEYS = tuple(field.name for field in fields(Machine) if field.name != "name")

MEMORY_KEYS = ("latency_cycles", "bytes_per_cycle", "dram")
"""Parameters of main memory that may be axes; ``dram`` is the name of a part, and goes with neither of the others."""

_STALL_KEYS = ("stall_percent", "seed")
"""Further parameters of main memory, which may be fixed but are no axes."""

MOST_LISTED = 20_000
"""Designs of a space that is small enough to be listed."""


@dataclass(frozen=True)
class Space:
    """Designs to choose from.

    Attributes
    ----------
    name : str
    base : Design
        Gives what no axis does.
    axes : dict of str to tuple
        Values by axis: a parameter of `Machine`, ``LANES_PER_CLUSTER``, one of ``MEMORY_KEYS``, or ``mhz``.
    fixed : dict of str to value
        The same with one value each.
    networks : dict of str to float
        Weights of networks by name, if the space's file names some.
    objectives, limits : tuple of str
        As the command line takes them, if the space's file states some.
    target : str
        The FPGA, or the library of cells, whose area is predicted; empty if none is stated.
    """

    name: str
    base: Design
    axes: dict[str, tuple[Value, ...]]
    fixed: dict[str, Value] = field(default_factory=dict)
    networks: dict[str, float] = field(default_factory=dict)
    objectives: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    target: str = ""

    @cached_property
    def mhz(self) -> float:
        """The clock where no axis and no file states one: the technology's."""
        pricing = self.base.pricing
        return pricing.clock(pricing.load()).mhz

    @property
    def size(self) -> int:
        """Choices; more than one may be the same design."""
        return math.prod(map(len, self.axes.values()))

    def choices(self) -> Iterator[dict[str, Value]]:
        """Yield every choice."""
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    @cached_property
    def keys(self) -> dict[str, dict[str, Value]] | None:
        """One choice for each design of the space by its key; None if the space is too large to be listed."""
        if self.size > MOST_LISTED:
            return None
        return {self.key(choice): choice for choice in self.choices()}

    def design(self, choice: Choice, name: str = "custom") -> Design:
        """Return the design of a choice.

        A post-processing unit is never wider than the array, a cluster has no more lanes than it can fetch weights
        for while there are tiles in flight, and a bus no more than 16 bytes for each cluster: where a choice has more,
        the most that fits is taken. An array of inner products has at least two lanes.

        Raises
        ------
        ValueError
            If there is no such machine or memory.
        """
        choice = {**self.fixed, **choice}
        values = {**asdict(self.base.machine), **{key: choice[key] for key in MACHINE_KEYS if key in choice}}
        fetched = lanes_of_a_fetch(values["array"])
        values["lanes"] = max(values["lanes"], fetched)
        values["post_lanes"] = min(values["post_lanes"], values["lanes"])
        if LANES_PER_CLUSTER in choice:
            shared = min(max(int(choice[LANES_PER_CLUSTER]), fetched), values["lanes"], fetched * values["tiles"])
            values["clusters"] = values["lanes"] // shared
        values["bus_bytes"] = min(values["bus_bytes"], TILE_BYTES * values["clusters"])
        machine = Machine(**{**values, "name": name})
        pricing = self.base.pricing
        if "mhz" in choice:
            pricing = replace(pricing, clock_mhz=float(choice["mhz"]))
        return Design(machine=machine, memory=self._memory(machine, choice), pricing=pricing)

    def _memory(self, machine: Machine, choice: Choice) -> MemoryTiming | None:
        chosen: dict[str, Any] = {name: choice[name] for name in (*MEMORY_KEYS, *_STALL_KEYS) if name in choice}
        if self.base.memory is None and not chosen:
            return None
        if self.base.memory is None or "dram" in chosen:
            return memory_with(chosen, machine)
        return replace(self.base.memory, **chosen)

    def key(self, choice: Choice) -> str:
        """Return a key of the design: two choices with the same key are the same design, whatever their values."""
        try:
            return design_key(self.design(choice))
        except ValueError:
            return "no design: " + json.dumps(dict(choice), sort_keys=True)

    def to_json(self) -> dict[str, Any]:
        """Return the description of the space in an exploration's folder, for comparison when it continues."""
        return {"name": self.name, "base": self.base.to_json(), "fixed": dict(self.fixed),
                "axes": {key: list(each) for key, each in self.axes.items()}}


def design_key(design: Design) -> str:
    """Return the same for designs that differ in nothing but their names."""
    machine = asdict(design.machine) | {"name": ""}
    return json.dumps([machine, design.timing.to_json(), design.pricing.clock_mhz], sort_keys=True)
