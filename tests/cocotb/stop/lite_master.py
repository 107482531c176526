"""A master on AXI4-Lite that costs a simulation little: nothing runs while it has nothing to do.

cocotbext-axi's wakes five times in each cycle, which took most of a campaign's time.
"""

from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import Event, RisingEdge

__all__ = ["LiteMaster"]


@dataclass
class Write:
    """A write, and what has come of it, whatever has become of who asked for it."""

    address: int
    data: int
    accepted: Event = field(default_factory=Event)
    answered: Event = field(default_factory=Event)


class LiteMaster:
    """Writes leave in order, address and data together, each without waiting for the response of the one before."""

    def __init__(self, dut, prefix: str = "s_axi__") -> None:
        self._dut, self._prefix = dut, prefix
        self._writes: deque[Write] = deque()
        self._owed: deque[Write] = deque()
        self._working = False
        for name in ("awvalid", "wvalid", "arvalid"):
            self._set(name, 0)
        for name, value in (("wstrb", 15), ("bready", 1), ("rready", 1)):
            self._set(name, value)

    def start_write(self, address: int, data: int) -> Write:
        """Have a word written."""
        write = Write(address, data)
        self._writes.append(write)
        if not self._working:
            self._working = True
            cocotb.start_soon(self._write_all())
        return write

    async def write(self, address: int, data: int) -> None:
        """Write a word, and wait for the response."""
        await self.start_write(address, data).answered.wait()

    async def read(self, address: int) -> int:
        """Return a word; one read at a time."""
        self._set("araddr", address)
        self._set("arvalid", 1)
        while True:
            await RisingEdge(self._dut.clk)  # outputs are those before this edge, inputs go behind it
            if self._get("arready"):
                break
        self._set("arvalid", 0)
        while True:
            await RisingEdge(self._dut.clk)
            if self._get("rvalid"):
                assert self._get("rresp") == 0
                return self._get("rdata")

    async def _write_all(self) -> None:
        """Send what there is to write, and take responses, until nothing is left."""
        standing: set[str] = set()
        while self._writes or self._owed:
            if self._writes and not standing:
                self._owed.append(self._writes.popleft())
                self._set("awaddr", self._owed[-1].address)
                self._set("wdata", self._owed[-1].data)
                standing = {"aw", "w"}
                for channel in standing:
                    self._set(f"{channel}valid", 1)
            await RisingEdge(self._dut.clk)
            for channel in [each for each in standing if self._get(f"{each}ready")]:
                standing.remove(channel)
                self._set(f"{channel}valid", 0)
                if not standing:
                    self._owed[-1].accepted.set()
            if self._owed and self._get("bvalid"):
                self._owed.popleft().answered.set()
        self._working = False

    def _get(self, name: str) -> int:
        return int(getattr(self._dut, self._prefix + name).value)

    def _set(self, name: str, value: int) -> None:
        getattr(self._dut, self._prefix + name).value = value
