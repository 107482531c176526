"""AXI4 master: requests of any length become INCR bursts, several of them outstanding.

One ID, so everything stays in order. Names and rules are those of the AMBA AXI4 specification (ARM IHI 0022).

*Burst length.* A request is cut at multiples of ``max_burst`` words, which are also 4 KiB borders or inside
them, so one comparison serves both rules and every burst but the first is aligned to its size. The default of
64 beats keeps an arbiter that loses 2 cycles per burst at 97 % (16 beats: 89 %) and holds others up for no
more than 64 cycles.

*Outstanding bursts.* A memory with ``latency`` cycles is saturated by bursts of ``b`` beats if
``outstanding * b >= latency + b + 1``. The default of 16 covers 20 cycles down to bursts of 2 beats.
"""

from collections.abc import Mapping

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from tilewright.rtl.bus.axi_channels import (
    axi4_read_signature,
    axi4_signature,
    axi4_write_signature,
    check_data_bytes,
    drive_address,
)
from tilewright.rtl.stream.queues import FlaggedFIFO

__all__ = [
    "MAX_BURST", "OUTSTANDING", "WRITES_AHEAD", "AxiMaster", "AxiReader", "AxiWriter", "BurstSplitter", "BusRequest",
    "read_beat", "write_beat",
]

MAX_BURST = 64
OUTSTANDING = 16
WRITES_AHEAD = 8
"""A write burst begins only while fewer words of those that have begun are to be sent: what a stop has to complete."""


class BusRequest(data.Struct):
    """A run of bus words: ``beats`` (1 to 65535) of them from ``address``, a multiple of the bus width."""

    address: 32
    beats: 16


def read_beat(data_bytes: int) -> data.StructLayout:
    """Return the layout of a word read: ``last`` marks the last word of its request."""
    return data.StructLayout({"data": 8 * data_bytes, "last": 1})


def write_beat(data_bytes: int) -> data.StructLayout:
    """Return the layout of a word to write: bit ``k`` of ``strobe`` stands for byte ``k``."""
    return data.StructLayout({"data": 8 * data_bytes, "strobe": data_bytes})


class BurstSplitter(wiring.Component):
    """Cut requests into bursts that cross no multiple of ``max_burst`` words.

    One burst per cycle, also across requests; the first leaves ``LATENCY`` cycles after its request has come.

    Members
    -------
    i : ``In(stream.Signature(BusRequest))``
        Requests.
    o : ``Out(stream.Signature(...))``
        Bursts: ``address``; ``length``, beats less one as in AxLEN; ``last``, the last burst of its request.
    cancel : ``In(1)``
        The burst that is offered, what is left of its request, and a request that comes in this cycle are forgotten.
    """

    LATENCY = 1

    def __init__(self, data_bytes: int, max_burst: int) -> None:
        check_data_bytes(data_bytes)
        if max_burst not in (2, 4, 8, 16, 32, 64, 128, 256):
            raise ValueError(f"AXI max_burst must be a power of two in 2..256, not {max_burst!r}")
        self.offset_bits = data_bytes.bit_length() - 1
        self.burst_bits = max_burst.bit_length() - 1
        super().__init__({
            "i": In(stream.Signature(BusRequest)),
            "o": Out(stream.Signature(data.StructLayout({"address": 32, "length": 8, "last": 1}))),
            "cancel": In(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = Signal(32 - self.offset_bits)  # address of the next burst in bus words
        left = Signal(16)                     # beats of this request still to be asked for, less one
        busy = Signal()
        last = Signal()                       # they fit in this block: in a register, as a requester may wait for it
        room = Signal(self.burst_bits)        # beats from here to the end of the block, less one
        block = word[self.burst_bits:]
        m.d.comb += [
            room.eq(~word[:self.burst_bits]),
            self.o.valid.eq(busy),
            self.o.payload.address.eq(Cat(Const(0, self.offset_bits), word)),
            self.o.payload.last.eq(last),
            self.o.payload.length.eq(Mux(last, left[:self.burst_bits], room)),
            self.i.ready.eq(~busy | (self.o.ready & last)),
        ]
        first, beats, rest = (Signal.like(each) for each in (word, left, left))
        m.d.comb += [
            first.eq(self.i.payload.address[self.offset_bits:]),
            beats.eq(self.i.payload.beats - 1),
            rest.eq(left - room - 1),
        ]
        with m.If(self.i.ready):
            m.d.sync += [busy.eq(self.i.valid), word.eq(first), left.eq(beats),
                         last.eq(beats <= ~first[:self.burst_bits])]
        with m.Elif(self.o.ready):
            m.d.sync += [word.eq(Cat(Const(0, self.burst_bits), block + 1)), left.eq(rest),
                         last.eq(rest[self.burst_bits:] == 0)]
        with m.If(self.cancel):
            m.d.sync += busy.eq(0)
        return m


class _BurstMaster(wiring.Component):
    """A master of one direction: requests in, bursts out, and the first burst that memory answered with an error.

    Parameters
    ----------
    data_bytes, max_burst, outstanding
        As for `AxiReader`.
    members : mapping of str to Member
        Members besides ``i``, ``halt``, ``clear``, ``error`` and ``error_address``.
    bus : Signature
        Of ``m_axi``.
    """

    def __init__(self, data_bytes: int, members: Mapping[str, wiring.Member], bus: wiring.Signature, *, max_burst: int,
                 outstanding: int) -> None:
        _check_burst_bytes(data_bytes, max_burst)
        self.data_bytes = data_bytes
        self.max_burst = max_burst
        self.outstanding = outstanding
        super().__init__({
            "i": In(stream.Signature(BusRequest)),
            **members,
            "halt": In(1),
            "clear": In(1),
            "error": Out(1),
            "error_address": Out(32),
            "m_axi": Out(bus),
        })

    def _split(self, m: Module) -> BurstSplitter:
        """Cut the requests into bursts."""
        m.submodules.splitter = splitter = BurstSplitter(self.data_bytes, self.max_burst)
        connect(m, wiring.flipped(self.i), splitter.i)
        return splitter

    def _note_error(self, m: Module, failed: Value, address: Value) -> None:
        """Keep the address of the first burst that ``failed``."""
        with m.If(self.clear):
            m.d.sync += self.error.eq(0)
        with m.Elif(failed & ~self.error):
            m.d.sync += [self.error.eq(1), self.error_address.eq(address)]

    def _note_stray(self, m: Module, stray: Value) -> None:
        """Remember a response that belongs to no burst."""
        with m.If(self.clear):
            m.d.sync += self.stray.eq(0)
        with m.Elif(stray):
            m.d.sync += self.stray.eq(1)


class AxiReader(_BurstMaster):
    """Read runs of words: requests in, words out in order.

    The R channel passes straight to ``o``, and a full ``o`` holds it up: ask only for what will be taken.
    ARVALID follows a request by ``LATENCY`` cycles; words are not delayed. A memory of 20 cycles latency and one
    word per cycle is saturated (see above) by long requests and by back-to-back requests of 2 beats or more.

    Parameters
    ----------
    data_bytes
        Bus width: 4 to 64.
    max_burst
        Longest burst in beats, a power of two; ``max_burst * data_bytes`` is at most 4096.
    outstanding
        Bursts asked for and not yet wholly received, at most: a power of two from 2 on.

    Members
    -------
    i : ``In(stream.Signature(BusRequest))``
        Requests to read.
    o : ``Out(stream.Signature(read_beat(data_bytes)))``
        The words.
    halt : ``In(1)``
        No burst begins, except one whose address the bus has seen; requests and words are taken and dropped.
    clear : ``In(1)``
        In the last cycle of a halt, ``asks`` being low: ``error`` and ``stray`` are forgotten, and bursts that are
        still outstanding are *orphans*: memory answers them when it likes, and their words and errors go nowhere.
    asks : ``Out(1)``
        A burst is being asked for, or will be.
    idle : ``Out(1)``
        No request that was taken is under way.
    stray : ``Out(1)``
        There was a word for no burst; stays high. Such words are taken and go nowhere.
    error : ``Out(1)``
        A response was not OKAY (EXOKAY answers what was never asked), had another ID, or RLAST was not where the burst
        ends; stays high. Words flow on, those of that burst being worthless. A burst ends with RLAST or with as many
        words as were asked for, whichever comes first, so the bursts behind it are not mixed up with it.
    error_address : ``Out(32)``
        Address of the first burst with such a response.
    m_axi : ``Out(axi4_read_signature(data_bytes))``
        The bus.
    """

    LATENCY = BurstSplitter.LATENCY

    def __init__(self, data_bytes: int, *, max_burst: int = MAX_BURST, outstanding: int = OUTSTANDING) -> None:
        super().__init__(data_bytes, {"o": Out(stream.Signature(read_beat(data_bytes))), "asks": Out(1), "idle": Out(1),
                                      "stray": Out(1)},
                         axi4_read_signature(data_bytes), max_burst=max_burst, outstanding=outstanding)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.m_axi
        splitter = self._split(m)
        m.submodules.pending = pending = FlaggedFIFO(width=33 + splitter.burst_bits, depth=self.outstanding)

        burst = splitter.o.payload
        m.d.comb += [
            *drive_address(axi, "ar", burst, self.data_bytes),
            axi.arvalid.eq(splitter.o.valid & pending.w_rdy),
            splitter.o.ready.eq(axi.arready & pending.w_rdy),
            pending.w_en.eq(splitter.o.valid & axi.arready),
            pending.w_data.eq(Cat(burst.address, burst.last, burst.length[:splitter.burst_bits])),
            # An address that the bus has seen stays until it is taken.
            splitter.cancel.eq(self.halt & ~(axi.arvalid & ~axi.arready)),
        ]

        address, last, length = pending.r_data[:32], pending.r_data[32], pending.r_data[33:]
        ends = Signal()           # the oldest burst
        received = Signal.like(length, name="received")  # of its words
        on_last = received == length
        with m.If(axi.rvalid & axi.rready & pending.r_rdy):
            m.d.sync += received.eq(Mux(ends, 0, received + 1))
        wanted = self._wanted(m, pending, ends)
        m.d.comb += [
            self.o.payload.data.eq(axi.rdata),
            self.o.payload.last.eq((axi.rlast | on_last) & last),
            self.o.valid.eq(axi.rvalid & wanted),
            axi.rready.eq(self.o.ready | ~wanted),
            ends.eq(axi.rvalid & axi.rready & (axi.rlast | on_last) & pending.r_rdy),
            pending.r_en.eq(ends),
            self.asks.eq(splitter.o.valid),
            self.idle.eq(~splitter.o.valid & ~pending.r_rdy),
        ]
        self._note_stray(m, axi.rvalid & ~pending.r_rdy)
        wrong = axi.rresp.any() | axi.rid | (axi.rlast ^ on_last)
        self._note_error(m, axi.rvalid & self.o.ready & wanted & wrong, address)
        return m

    def _wanted(self, m: Module, pending: FlaggedFIFO, ends: Value) -> Signal:
        """Return whether the next word is for ``o``: there is a burst for it, which is no orphan, and no halt."""
        wanted = Signal()
        orphans = Signal(range(self.outstanding + 1))
        has_orphans = Signal()
        m.d.comb += wanted.eq(pending.r_rdy & ~has_orphans & ~self.halt)
        with m.If(self.clear):
            m.d.sync += [orphans.eq(pending.level - ends), has_orphans.eq(pending.level != ends)]
        with m.Elif(ends & has_orphans):
            m.d.sync += [orphans.eq(orphans - 1), has_orphans.eq(orphans != 1)]
        return wanted


class AxiWriter(_BurstMaster):
    """Write runs of words: requests and words in, in the same order.

    AWVALID follows a request by ``LATENCY`` cycles, and so does the first word; words pass straight through, one
    per cycle, also from request to request, as long as ``outstanding`` bursts cover the time to a response.
    Neither AW nor W waits for the other to be taken, as AXI demands: a memory may wait for both. AW runs ahead of W by
    `WRITES_AHEAD` words and a burst.

    Parameters
    ----------
    data_bytes, max_burst
        As for `AxiReader`.
    outstanding
        Bursts begun and not yet responded to, at most: a power of two from 2 on.

    Members
    -------
    i : ``In(stream.Signature(BusRequest))``
        Where to write.
    data : ``In(stream.Signature(write_beat(data_bytes)))``
        The words, as many as the requests have beats.
    halt : ``In(1)``
        No burst begins, and requests are taken and dropped. Those that have begun need their words, which are at most
        ``max_burst`` + `WRITES_AHEAD` - 1.
    clear : ``In(1)``
        In the last cycle of a halt, while ``idle``: ``error`` and ``stray`` are forgotten.
    idle : ``Out(1)``
        No request that was taken is under way: every word is sent and every response received.
    stray : ``Out(1)``
        There was a response to no burst; stays high.
    error : ``Out(1)``
        A response was not OKAY, or had another ID; stays high. Writing goes on.
    error_address : ``Out(32)``
        Address of the first burst with such a response.
    m_axi : ``Out(axi4_write_signature(data_bytes))``
        The bus.
    """

    LATENCY = BurstSplitter.LATENCY + 1

    def __init__(self, data_bytes: int, *, max_burst: int = MAX_BURST, outstanding: int = OUTSTANDING) -> None:
        super().__init__(data_bytes, {"data": In(stream.Signature(write_beat(data_bytes))), "idle": Out(1),
                                      "stray": Out(1)},
                         axi4_write_signature(data_bytes), max_burst=max_burst, outstanding=outstanding)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.m_axi
        splitter = self._split(m)
        m.submodules.lengths = lengths = FlaggedFIFO(width=8, depth=self.outstanding)
        m.submodules.pending = pending = FlaggedFIFO(width=32, depth=self.outstanding)

        # A burst enters the AW register, the queue for W and the queue for B at once. It leaves the queue for
        # B last: while that has room, the other has.
        burst = splitter.o.payload
        begin = Signal()
        owed = Signal(range(self.max_burst + WRITES_AHEAD))  # words of bursts that have begun
        m.d.comb += [
            splitter.o.ready.eq((~axi.awvalid | axi.awready) & pending.w_rdy & (owed < WRITES_AHEAD) & ~self.halt),
            splitter.cancel.eq(self.halt),
            begin.eq(splitter.o.valid & splitter.o.ready),
            lengths.w_en.eq(begin),
            lengths.w_data.eq(burst.length),
            pending.w_en.eq(begin),
            pending.w_data.eq(burst.address),
        ]
        address = Signal.like(burst)
        with m.If(begin):
            m.d.sync += [address.eq(burst), axi.awvalid.eq(1)]
        with m.Elif(axi.awready):
            m.d.sync += axi.awvalid.eq(0)
        m.d.comb += drive_address(axi, "aw", address, self.data_bytes)

        m.d.sync += owed.eq(owed + Mux(begin, burst.length + 1, 0) - (axi.wvalid & axi.wready))
        sent = Signal(8)  # beats of this burst
        m.d.comb += [
            axi.wdata.eq(self.data.payload.data),
            axi.wstrb.eq(self.data.payload.strobe),
            axi.wlast.eq(sent == lengths.r_data),
            axi.wvalid.eq(self.data.valid & lengths.r_rdy),
            self.data.ready.eq(axi.wready & lengths.r_rdy),
            lengths.r_en.eq(axi.wvalid & axi.wready & axi.wlast),
        ]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += sent.eq(Mux(axi.wlast, 0, sent + 1))

        m.d.comb += [
            axi.bready.eq(1),
            pending.r_en.eq(axi.bvalid),
            self.idle.eq(~splitter.o.valid & ~pending.r_rdy),
        ]
        self._note_stray(m, axi.bvalid & ~pending.r_rdy)
        self._note_error(m, axi.bvalid & pending.r_rdy & (axi.bresp.any() | axi.bid), pending.r_data)
        return m


class AxiMaster(wiring.Component):
    """An `AxiReader` and an `AxiWriter` on one AXI4 port; they do not order reads after writes or vice versa.

    Parameters are those of both, and ``prot``, the AxPROT of every burst.

    Members
    -------
    halt, clear
        Of both.
    read, read_data, read_asks, read_idle, read_error, read_error_address
        The reader's ``i``, ``o``, ``asks``, ``idle``, ``error``, ``error_address``.
    write, write_data, write_idle, write_error, write_error_address
        The writer's ``i``, ``data``, ``idle``, ``error``, ``error_address``.
    stray : ``Out(1)``
        There was a response that neither of them waited for.
    m_axi : ``Out(axi4_signature(data_bytes))``
        The bus.
    """

    def __init__(self, data_bytes: int, *, max_burst: int = MAX_BURST, outstanding: int = OUTSTANDING,
                 prot: int = 0) -> None:
        _check_burst_bytes(data_bytes, max_burst)
        self.data_bytes = data_bytes
        self.prot = prot
        self.options = {"max_burst": max_burst, "outstanding": outstanding}
        super().__init__({
            "read":                 In(stream.Signature(BusRequest)),
            "read_data":            Out(stream.Signature(read_beat(data_bytes))),
            "halt":                 In(1),
            "clear":                In(1),
            "read_asks":            Out(1),
            "read_idle":            Out(1),
            "read_error":           Out(1),
            "read_error_address":   Out(32),
            "write":                In(stream.Signature(BusRequest)),
            "write_data":           In(stream.Signature(write_beat(data_bytes))),
            "write_idle":           Out(1),
            "write_error":          Out(1),
            "write_error_address":  Out(32),
            "stray":                Out(1),
            "m_axi":                Out(axi4_signature(data_bytes)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = AxiReader(self.data_bytes, **self.options)
        m.submodules.writer = writer = AxiWriter(self.data_bytes, **self.options)
        connect(m, wiring.flipped(self.read), reader.i)
        connect(m, reader.o, wiring.flipped(self.read_data))
        connect(m, wiring.flipped(self.write), writer.i)
        connect(m, wiring.flipped(self.write_data), writer.data)
        m.d.comb += [
            *[getattr(part, name).eq(getattr(self, name)) for part in (reader, writer) for name in ("halt", "clear")],
            self.read_asks.eq(reader.asks),
            self.read_idle.eq(reader.idle),
            self.stray.eq(reader.stray | writer.stray),
            self.read_error.eq(reader.error),
            self.read_error_address.eq(reader.error_address),
            self.write_idle.eq(writer.idle),
            self.write_error.eq(writer.error),
            self.write_error_address.eq(writer.error_address),
        ]
        for part in (reader, writer):
            for name, member in part.m_axi.signature.members.items():
                inner, outer = getattr(part.m_axi, name), getattr(self.m_axi, name)
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        m.d.comb += [self.m_axi.arprot.eq(self.prot), self.m_axi.awprot.eq(self.prot)]
        return m


def _check_burst_bytes(data_bytes: int, max_burst: int) -> None:
    check_data_bytes(data_bytes)
    if max_burst * data_bytes > 4096:
        raise ValueError(f"AXI max_burst must be at most {4096 // data_bytes} beats of {data_bytes} bytes, "
                         f"not {max_burst!r}")
