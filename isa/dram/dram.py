"""A DRAM part behind its controller, as main memory at a clock: the numbers that simulator and cycle model share."""

from dataclasses import dataclass, fields, replace

from tilewright.isa.dram.parts import DramPart, part_named
from tilewright.isa.machine import MemoryTiming

__all__ = ["CONTROLLER_NS", "WRITE_BUFFER_BYTES", "Dram", "DramNumbers", "DramTiming", "dram_named"]

CONTROLLER_NS = 30.0
"""Of controller, PHY and interconnect, there and back: an assumption, as no data sheet of a DRAM states it."""

WRITE_BUFFER_BYTES = 2048
"""Of written words that the controller holds; two of the longest bursts (64 words of 16 bytes): an assumption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DramNumbers:
    """Values that the simulator takes after ``--dram``, in this order: bytes, counts and picoseconds, all integers."""

    period: int
    controller: int
    write_buffer_bytes: int
    banks: int
    row_bytes: int
    access_bytes: int
    access: int
    cl: int
    cwl: int
    rcd: int
    rp: int
    ras: int
    rtp: int
    wr: int
    wtr: int
    rtw: int
    rrd: int
    faw: int
    refi: int
    rfc: int


@dataclass(frozen=True, slots=True)
class Dram:
    """A part as the machine's clock sees it.

    Attributes
    ----------
    part : DramPart
    mhz : float
        Clock of machine and bus.
    """

    part: DramPart
    mhz: float

    def __post_init__(self) -> None:
        if not 0 < self.mhz <= 1e6:
            raise ValueError(f"Memory dram must be at a clock above 0 MHz, not {self.mhz!r}")

    def numbers(self) -> DramNumbers:
        """Return geometry and times as integers, times in picoseconds."""
        times = {field.name[2:]: round(1000 * getattr(self.part, field.name)) for field in fields(DramPart)
                 if field.name.startswith("t_")}
        return DramNumbers(period=round(1e6 / self.mhz), controller=round(1000 * CONTROLLER_NS),
                           write_buffer_bytes=WRITE_BUFFER_BYTES, banks=self.part.banks, row_bytes=self.part.row_bytes,
                           access_bytes=self.part.access_bytes, access=round(1000 * self.part.access_ns), **times)

    @property
    def latency_cycles(self) -> int:
        """Cycles of a read that must open a row, the bank being closed: what the host core waits for each access."""
        part = self.part
        return self._cycles(CONTROLLER_NS + part.t_rcd + part.t_cl + part.access_ns)

    @property
    def bytes_per_cycle(self) -> int:
        """Bytes per cycle on the data pins, rounded down, at least 1; the bus may be narrower."""
        return max(1, int(self.part.access_bytes / self.part.access_ns * 1e3 / self.mhz))

    @property
    def response_cycles(self) -> int:
        """Cycles from the last written word to the response, which the controller gives before the DRAM has it."""
        return self._cycles(CONTROLLER_NS)

    def _cycles(self, nanoseconds: float) -> int:
        period = round(1e6 / self.mhz)
        return max(1, -(-round(1000 * nanoseconds) // period))


def dram_named(name: str, mhz: float) -> Dram:
    """Return the part called ``name`` at a clock of ``mhz``.

    Raises
    ------
    ValueError
        If there is no part of that name, or no such clock.
    """
    return Dram(part_named(name), mhz)


@dataclass(frozen=True, slots=True, kw_only=True)
class DramTiming(MemoryTiming):
    """Main memory of DRAM: its banks, rows and refreshes decide when a word comes.

    Latency and bytes per cycle are `Dram.latency_cycles`, for accesses of the host core, and its peak rate.

    Attributes
    ----------
    dram : Dram
    """

    dram: Dram

    @classmethod
    def of(cls, dram: Dram, *, stall_percent: int = 0, seed: int = 0) -> "DramTiming":
        """Return the timing of ``dram``, such as `dram_named` returns it."""
        return cls(dram=dram, latency_cycles=dram.latency_cycles, bytes_per_cycle=dram.bytes_per_cycle,
                   stall_percent=stall_percent, seed=seed)

    def at(self, mhz: float) -> "DramTiming":
        """Return the same DRAM at another clock."""
        return DramTiming.of(replace(self.dram, mhz=mhz), stall_percent=self.stall_percent, seed=self.seed)

    def to_json(self) -> dict[str, int | str]:
        """Return the timing as reports state it, with the part by name."""
        return {**MemoryTiming.to_json(self), "dram": self.dram.part.name}

    @property
    def brief(self) -> str:
        """Text for the cell of a table: part and clock."""
        return f"{self.dram.part.name}, {self.dram.mhz:g} MHz{self._stalls(', ')}"

    def __str__(self) -> str:
        part = self.dram.part
        return (f"{part.name} ({part.device}) at {self.dram.mhz:g} MHz: {self.latency_cycles} cycles to a word in a "
                f"closed row, at most {self.bytes_per_cycle} bytes per cycle{self._stalls('; ')}")
