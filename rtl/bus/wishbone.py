"""AXI4 to Wishbone: requests of the coprocessor's AXI4 master go out on a Wishbone B4 bus in pipelined mode.

Names and rules are those of the specification "Wishbone B4" (OpenCores, 2010), its pipelined mode. A slave or an
interconnect in standard (classic) mode is connected as its section 5.2 says: ``stall = stb & ~(ack | err)``, that is, a
word is taken when it is answered; this bridge accepts an answer in the cycle of its request.
"""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from tilewright.rtl.bus.axi_channels import SLVERR, axi4_signature

__all__ = ["OUTSTANDING", "WishboneBridge", "wishbone_signature"]

OUTSTANDING = 32


def wishbone_signature(data_bytes: int) -> wiring.Signature:
    """Return a Wishbone B4 bus as seen by the master; members are named as in the specification, without _O and _I.

    ``adr`` is the address of a byte, a multiple of ``data_bytes``; bit ``k`` of ``sel`` stands for byte ``k``.
    """
    return wiring.Signature({
        "cyc":   Out(1),
        "stb":   Out(1),
        "we":    Out(1),
        "adr":   Out(32),
        "sel":   Out(data_bytes),
        "dat_w": Out(8 * data_bytes),
        "dat_r": In(8 * data_bytes),
        "ack":   In(1),
        "err":   In(1),
        "stall": In(1),
    })


class WishboneBridge(wiring.Component):
    """Bursts of an AXI4 master as single words on Wishbone, one word per cycle, answers in order.

    *Rate.* A word per cycle is asked for as long as the slave does not stall and answers within ``OUTSTANDING - 3``
    cycles; reads and writes share it. The bridge stays with a burst until all of its words have been asked for, or
    until it has no word to offer while the other direction has one; then the other direction has its turn. So neither
    starves, and neither waits for the other for ever.

    *Latency.* The first word of a burst is asked for in the cycle after its address; an answer reaches R or B two
    cycles after ``ack``.

    *Errors.* A word answered with ``err`` gives SLVERR with that word read, or with the response to its burst when
    written; the words after it are still asked for, and each must be answered. ``rty`` does not exist here.

    *What it relies on.* Bursts are INCR of full words, as `rtl.bus.axi.AxiMaster` sends them; the slave answers every
    word it has taken, once, in order, by ``ack`` or ``err``. ``cyc`` is high from the first request to the last answer.

    Parameters
    ----------
    data_bytes
        Bus width: 4 to 64.

    Members
    -------
    s_axi : ``In(axi4_signature(data_bytes))``
        From the master; one ID.
    m_wb : ``Out(wishbone_signature(data_bytes))``
        The bus.
    """

    def __init__(self, data_bytes: int) -> None:
        self.data_bytes = data_bytes
        super().__init__({"s_axi": In(axi4_signature(data_bytes)), "m_wb": Out(wishbone_signature(data_bytes))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pending = self._pending = SyncFIFO(width=2, depth=OUTSTANDING)  # what each answer will be for
        m.submodules.words = self._words = SyncFIFO(width=8 * self.data_bytes + 2, depth=OUTSTANDING)
        m.submodules.responses = self._responses = SyncFIFO(width=1, depth=OUTSTANDING)
        self._read_room = Signal(range(OUTSTANDING + 1), init=OUTSTANDING)   # words that R can still take up
        self._write_room = Signal(range(OUTSTANDING + 1), init=OUTSTANDING)  # bursts, likewise on B
        axi = self.s_axi
        read = _Burst(m, self.data_bytes, axi.arvalid, axi.arready, axi.araddr, axi.arlen)
        write = _Burst(m, self.data_bytes, axi.awvalid, axi.awready, axi.awaddr, axi.awlen)
        self._ask(m, read, write)
        self._answer(m)
        return m

    def _ask(self, m: Module, read: "_Burst", write: "_Burst") -> None:
        """Offer a word of one of the bursts on the bus."""
        axi, bus, pending = self.s_axi, self.m_wb, self._pending
        writes = Signal()       # the turn
        can_read = Signal()
        can_write = Signal()
        write_now = Signal()
        taken = Signal()
        offered = Signal()      # in the cycle before, and not taken: then it stands
        m.d.comb += [
            can_read.eq(read.valid & (self._read_room != 0)),
            can_write.eq(write.valid & axi.wvalid & (self._write_room != 0)),
            write_now.eq(Mux(offered, writes, Mux(writes, can_write | ~can_read, can_write & ~can_read))),
            bus.stb.eq(pending.w_rdy & Mux(write_now, can_write, can_read)),
            bus.cyc.eq(bus.stb | pending.r_rdy),
            bus.we.eq(write_now),
            bus.adr.eq(Mux(write_now, write.address, read.address)),
            bus.sel.eq(Mux(write_now, axi.wstrb, (1 << self.data_bytes) - 1)),
            bus.dat_w.eq(axi.wdata),
            taken.eq(bus.stb & ~bus.stall),
            axi.wready.eq(taken & write_now),
            read.taken.eq(taken & ~write_now),
            write.taken.eq(taken & write_now),
            pending.w_en.eq(taken),
            pending.w_data.eq(Cat(write_now, Mux(write_now, write.last, read.last))),
        ]
        m.d.sync += [writes.eq(write_now), offered.eq(bus.stb & bus.stall)]
        with m.If(taken & Mux(write_now, write.last, read.last)):
            m.d.sync += writes.eq(~write_now)

    def _answer(self, m: Module) -> None:
        """Pass answers on to R and B, each through a queue that has room for all that was asked for."""
        axi, bus, pending = self.s_axi, self.m_wb, self._pending
        answered = Signal()
        failed = Signal()
        data = Signal(8 * self.data_bytes)
        was_write, was_last = pending.r_data[0], pending.r_data[1]
        burst_failed = Signal()
        m.d.sync += [answered.eq(bus.cyc & (bus.ack | bus.err)), failed.eq(bus.err), data.eq(bus.dat_r)]
        m.d.comb += [
            pending.r_en.eq(answered),
            self._words.w_en.eq(answered & ~was_write),
            self._words.w_data.eq(Cat(data, was_last, failed)),
            self._responses.w_en.eq(answered & was_write & was_last),
            self._responses.w_data.eq(failed | burst_failed),
            Cat(axi.rdata, axi.rlast).eq(self._words.r_data[:-1]),
            axi.rresp.eq(Mux(self._words.r_data[-1], SLVERR, 0)),
            axi.rvalid.eq(self._words.r_rdy),
            self._words.r_en.eq(axi.rready),
            axi.bresp.eq(Mux(self._responses.r_data, SLVERR, 0)),
            axi.bvalid.eq(self._responses.r_rdy),
            self._responses.r_en.eq(axi.bready),
        ]
        with m.If(answered & was_write):
            m.d.sync += burst_failed.eq(~was_last & (failed | burst_failed))
        reads = pending.w_en & ~pending.w_data[0]
        ends_write = pending.w_en & pending.w_data.all()
        m.d.sync += [
            self._read_room.eq(self._read_room + (axi.rvalid & axi.rready) - reads),
            self._write_room.eq(self._write_room + (axi.bvalid & axi.bready) - ends_write),
        ]


class _Burst:
    """A burst under way: ``valid`` while words are left, the ``address`` of the next, and whether that is the ``last``.

    The next burst is accepted in the cycle in which the last word of one is ``taken``.
    """

    def __init__(self, m: Module, data_bytes: int, offered: Value, ready: Signal, address: Value,
                 length: Value) -> None:
        self.valid = Signal()
        self.last = Signal()
        self.taken = Signal()
        self.address = Signal(32)
        left = Signal(8)
        m.d.comb += [self.last.eq(left == 0), ready.eq(~self.valid | (self.taken & self.last))]
        with m.If(ready):
            m.d.sync += [self.valid.eq(offered), self.address.eq(address), left.eq(length)]
        with m.Elif(self.taken):
            m.d.sync += [self.address.eq(self.address + data_bytes), left.eq(left - 1)]
