"""A design: the machine, the timing of its memory, its clock, and the prices of its technology."""

from dataclasses import asdict, dataclass
from typing import Any

from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.isa.dram.dram import DramTiming
from tilewright.isa.extension import Extension
from tilewright.isa.machine import Machine, MemoryTiming

__all__ = ["Design"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All properties of the hardware on which the cycles, time and energy of a run depend.

    Attributes
    ----------
    machine : Machine
    memory : MemoryTiming or None
        Timing of main memory; None for the default: ``LATENCY_CYCLES``, then one bus word per cycle. DRAM always uses
        the design's clock, whatever clock it was stated with.
    pricing : Pricing
        Technology, DRAM part, clock gates and clock.
    """

    machine: Machine
    memory: MemoryTiming | None = None
    pricing: Pricing = DEFAULT

    def __post_init__(self) -> None:
        if isinstance(self.memory, DramTiming):
            object.__setattr__(self, "memory", self.memory.at(self.mhz))

    @property
    def timing(self) -> MemoryTiming:
        """The timing of main memory; the default if none is stated."""
        return self.memory or MemoryTiming.default(self.machine)

    @property
    def mhz(self) -> float:
        """The clock frequency; that of the technology if none is stated."""
        return self.pricing.clock_mhz or self.pricing.load().clock_mhz

    def to_json(self) -> dict[str, Any]:
        """Return the design as a design file states it, every value filled in."""
        technology = self.pricing.load()
        memory = self.timing.to_json()
        if "dram" in memory:    # says the rest
            del memory["latency_cycles"], memory["bytes_per_cycle"]
        return {"name": self.machine.name,
                "machine": {key: str(value.path) if isinstance(value, Extension) else value
                            for key, value in asdict(self.machine).items() if key != "name"},
                "memory": memory,
                "clock": {"mhz": self.pricing.clock(technology).mhz},
                "energy": {"technology": self.pricing.technology, "dram": self.pricing.dram,
                           "gated": self.pricing.gated}}
