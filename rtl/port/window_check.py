"""Memory windows: the host limits what the program may reach, in front of the bus master."""

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.rtl.bus.axi import BusRequest
from tilewright.rtl.bus.axi_channels import DATA_BYTES

__all__ = ["MemoryWindow", "WindowCheck"]


class MemoryWindow(data.Struct):
    """Bytes ``base`` up to, not including, ``limit``; all zero is a window onto nothing.

    As ``limit`` has 32 bits, the last bus word of the address space is in no window.
    """

    base: 32
    limit: 32
    readable: 1
    writable: 1


class WindowCheck(wiring.Component):
    """Pass on requests that lie wholly inside one window; stop at the first that does not.

    A request is a breach if no single window with the permission holds all its bytes, if it runs past the end
    of the address space, if its address is not a multiple of the bus width, or if it has no beats. Neither it nor
    any request after it is passed on until reset: one that comes while it is found is taken and dropped, the next
    is not taken. Requests taken before it still leave.

    One request per cycle; each leaves ``LATENCY`` cycles later unless ``o`` stalls. The end of a request is
    summed before the register and compared after it.

    Parameters
    ----------
    data_bytes
        Bus width: 4 to 64.
    is_write
        Whether the requests are writes, and so need ``writable``; else ``readable``.
    windows
        How many windows there are.

    Members
    -------
    i, o : streams of `BusRequest`
        In and out.
    windows : ``In(MemoryWindow).array(windows)``
        Set by the host; steady while requests pass.
    halt : ``In(1)``
        While high, no further request is taken, such as after a fault elsewhere.
    busy : ``Out(1)``
        A request has been taken and has not left.
    fault : ``Out(1)``
        There has been a breach; stays high until reset.
    fault_address : ``Out(32)``
        Address of the request that was one; before there is one, of any request.
    """

    LATENCY = 1

    def __init__(self, data_bytes: int, *, is_write: bool, windows: int = 4) -> None:
        if data_bytes not in DATA_BYTES:
            raise ValueError(f"WindowCheck data_bytes must be one of {DATA_BYTES}, not {data_bytes!r}")
        if not isinstance(windows, int) or windows < 1:
            raise ValueError(f"WindowCheck windows must be a positive integer, not {windows!r}")
        self.data_bytes = data_bytes
        self.is_write = is_write
        super().__init__({
            "i": In(stream.Signature(BusRequest)),
            "o": Out(stream.Signature(BusRequest)),
            "windows": In(MemoryWindow).array(windows),
            "halt": In(1),
            "busy": Out(1),
            "fault": Out(1),
            "fault_address": Out(32),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        offset_bits = self.data_bytes.bit_length() - 1
        held = Signal()
        request = Signal(BusRequest)
        end = Signal(33)  # one bit more than an address: the end of a request that wraps is beyond any limit
        sound = Signal()
        inside = Signal()
        breach = Signal()

        inside_each = [
            (window.writable if self.is_write else window.readable)
            & (request.address >= window.base) & (end <= window.limit)
            for window in self.windows
        ]
        m.d.comb += [
            inside.eq(sound & Cat(inside_each).any()),
            breach.eq(held & ~inside),
            self.o.valid.eq(held & inside),
            self.o.payload.eq(request),
            self.busy.eq(held),
            self.i.ready.eq(~self.halt & ~self.fault & (~held | self.o.ready)),
        ]
        taken = self.i.valid & self.i.ready
        with m.If(taken):
            asked = self.i.payload
            m.d.sync += [
                request.eq(asked),
                end.eq(asked.address + (asked.beats << offset_bits)),
                sound.eq((asked.beats != 0) & (asked.address[:offset_bits] == 0)),
            ]
        with m.If(taken | breach | self.o.ready):
            m.d.sync += held.eq(taken & ~breach)
        with m.If(breach):
            m.d.sync += self.fault.eq(1)
        with m.If(~self.fault):  # not of a breach alone, which the comparison tells late
            m.d.sync += self.fault_address.eq(request.address)
        return m
