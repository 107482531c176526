"""AXI4 from the core's clock to a clock of the bus: each of the five channels through a queue between both."""

from amaranth import Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

from tilewright.rtl.bus.axi import OUTSTANDING
from tilewright.rtl.bus.axi_channels import axi4_signature

__all__ = ["ClockCrossing"]

_CONSTANT = ("id", "size", "burst", "cache", "prot")
"""Fields of an address that are the same in every burst: they pass as they are."""

_TO_BUS, _TO_CORE = ("ar", "aw", "w"), ("r", "b")


class ClockCrossing(wiring.Component):
    """Pass bursts of an AXI4 master on to a bus with a clock of its own, and the answers back.

    *Latency.* What is offered in a cycle of one clock is there two to three edges of the other later: a read takes at
    most three cycles of each clock longer, and so does the response to a write (`read_cycles`).

    *Rate.* A word a cycle of the slower clock in each direction.

    *Order.* Channels keep theirs, and no word of a write is offered before its address, as the master does it.

    *Reset.* ``rst`` resets both sides: that of the bus at once, and until two edges of its clock after ``rst`` falls.

    Parameters
    ----------
    data_bytes
        Bus width: 4 to 64.

    Members
    -------
    bus_clk : ``In(1)``
        Clock of ``m_axi``; it may have any frequency and phase.
    s_axi : ``In(axi4_signature(data_bytes))``
        From the master, in the core's clock.
    m_axi : ``Out(axi4_signature(data_bytes))``
        The bus.
    """

    WORDS = 16
    """Of data on their way: more than two crossings take, so that none waits for another."""

    OTHERS = 4
    """Addresses and responses on their way."""

    def __init__(self, data_bytes: int) -> None:
        super().__init__({"bus_clk": In(1), "s_axi": In(axi4_signature(data_bytes)),
                          "m_axi": Out(axi4_signature(data_bytes))})

    @staticmethod
    def read_cycles(core_mhz: float, bus_mhz: float) -> float:
        """Return cycles of the core's clock by which the first word of a read comes later, at most."""
        return 3 + 3 * core_mhz / bus_mhz

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.bus = ClockDomain("bus", local=True)
        m.d.comb += ClockSignal("bus").eq(self.bus_clk)
        m.submodules.reset = ResetSynchronizer(ResetSignal(), domain="bus")
        core, bus = self.s_axi, self.m_axi
        for channel in (*_TO_BUS, *_TO_CORE):
            source, target = (core, bus) if channel in _TO_BUS else (bus, core)
            domains = {"w_domain": "sync", "r_domain": "bus"} if channel in _TO_BUS else \
                {"w_domain": "bus", "r_domain": "sync"}
            fields = self._fields(channel)
            for name in fields["constant"]:
                m.d.comb += getattr(target, name).eq(getattr(source, name))
            sent = Cat(getattr(source, name) for name in fields["queued"])
            m.submodules[channel] = queue = AsyncFIFO(
                width=len(sent), depth=self.WORDS if channel in ("r", "w") else self.OTHERS, **domains)
            m.d.comb += [
                queue.w_data.eq(sent),
                queue.w_en.eq(getattr(source, f"{channel}valid")),
                getattr(source, f"{channel}ready").eq(queue.w_rdy),
                Cat(getattr(target, name) for name in fields["queued"]).eq(queue.r_data),
                queue.r_en.eq(getattr(target, f"{channel}ready")),
                getattr(target, f"{channel}valid").eq(queue.r_rdy),
            ]
            if channel == "w":
                self._hold_back(m, queue)
        return m

    def _fields(self, channel: str) -> dict[str, list[str]]:
        names = [name for name in self.m_axi.signature.members
                 if name.startswith(channel) and name not in (f"{channel}valid", f"{channel}ready")]
        constant = [name for name in names if channel in ("ar", "aw") and name.removeprefix(channel) in _CONSTANT]
        return {"constant": constant, "queued": [name for name in names if name not in constant]}

    def _hold_back(self, m: Module, queue: AsyncFIFO) -> None:
        """Offer words only of writes whose address is or has been offered: queues are not equally fast."""
        axi = self.m_axi
        stands = Signal()
        owed = Signal(range(OUTSTANDING + 1))  # bursts whose last word has not been sent
        begun: Value = owed + (axi.awvalid & ~stands)
        passes = begun != 0
        m.d.comb += [axi.wvalid.eq(queue.r_rdy & passes), queue.r_en.eq(axi.wready & passes)]
        m.d.bus += [stands.eq(axi.awvalid & ~axi.awready),
                    owed.eq(begun - (axi.wvalid & axi.wready & axi.wlast))]
