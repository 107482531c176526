"""Turn rows of bytes, which arrive as bus words or as padding, into writes in the linear or the blocked layout.

A *segment* is a piece of a row that lies in one piece at its source: a run, or the padding before or after the
row. It takes words from the bus and leaves as *parts*, each of them bytes of one word for neighbouring places.
A word is one part, in the blocked layout one for each pixel it touches. Of a word wider than the activation buffer,
which takes 16 bytes a cycle, segments that go there have parts of 16 bytes: those of each 16 lanes.

Two stages, and a register behind each. *Plan* decides lanes and size of a part from counters alone, ahead of the
data. *Place* adds up the address and shifts the word down.
"""

from amaranth import Cat, Const, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import TILE_BYTES

__all__ = ["BLOCKED", "LINEAR", "RowWriter", "address_bits", "segment_layout", "write_layout"]

LINEAR = 0
BLOCKED = 1


_ADDRESS_BITS = 20
"""Of a byte of the activation and the result buffer."""

_WORD_INDEX_BITS = 16
"""Of a bus word of a weight memory."""


def address_bits(bus_bytes: int) -> int:
    """Return the bits of a byte's address in any buffer."""
    return max(_ADDRESS_BITS, _WORD_INDEX_BITS + exact_log2(bus_bytes))


def segment_layout(bus_bytes: int, tag: ShapeLike, *, blocked: bool = True, coded: bool = False) -> StructLayout:
    """Return the layout of a segment.

    ``fresh``: it starts at ``address``, else where the segment before it ended. Blocked: ``address`` is 16 times
    the word, plus the bank, of a pixel's first byte. ``words``: how many are taken from the bus (``fill``:
    made up of ``value``). ``first_lane``, ``last_lane``: of the first byte in the first word and of the last in
    the last word. ``pixel``: bytes of a pixel less one, blocked only. ``tag`` rides along. Without ``blocked`` there
    is neither ``layout`` nor ``pixel``. Where words are wider than 16 bytes, ``narrow``: no part is. With ``coded``:
    whether it is a block for the decoder of weights, of so many ``steps``.
    """
    code = {"coded": 1, "steps": 16} if coded else {}
    lane = range(bus_bytes)
    narrow = {"narrow": 1} if bus_bytes > TILE_BYTES else {}
    layout, pixel = ({"layout": 1}, {"pixel": 12}) if blocked else ({}, {})
    return StructLayout({
        "address": address_bits(bus_bytes), "words": 16, "first_lane": lane, "last_lane": lane, **layout, "fill": 1,
        "fresh": 1, **narrow, **pixel, "value": 8, "tag": tag, **code,
    })


def write_layout(bus_bytes: int, tag: ShapeLike, *, blocked: bool = True) -> StructLayout:
    """Return the layout of a write: ``count`` bytes for ``address``; ``last`` ends its segment."""
    layout = {"layout": 1} if blocked else {}
    return StructLayout({
        **layout, "address": address_bits(bus_bytes), "count": max(5, bus_bytes.bit_length()), "data": 8 * bus_bytes,
        "last": 1, "tag": tag,
    })


class RowWriter(wiring.Component):
    """Turn segments and bus words into writes, one write per cycle without a gap between segments.

    A linear segment gives one write per bus word, a blocked one as many as pixels are touched by each word; a narrow
    one as many as if words had 16 bytes. A write leaves ``LATENCY`` cycles after its segment was taken, if its word is
    there a cycle before.

    Parameters
    ----------
    bus_bytes
        Bytes of a word: 4 to 64.
    tag
        Shape that rides along with a segment.
    splits
        Whether words may start at any lane and blocked segments may hold many pixels, as they come from memory;
        else ``first_lane`` is zero and a blocked segment is one pixel or part of it.
    blocked
        Whether there are segments in the blocked layout; else the layouts of segments and writes have no ``layout``.

    Members
    -------
    segments : ``In(stream.Signature(segment_layout(bus_bytes, tag)))``
    words : ``In(stream.Signature(8 * bus_bytes))``
        The words of all segments in order, none for those with ``fill``.
    o : ``Out(stream.Signature(write_layout(bus_bytes, tag)))``
    busy : ``Out(1)``
        A segment has been taken and not all of it has left.
    """

    LATENCY = 3
    WORD_LATENCY = 1
    """From a word to the first write with bytes of it, if its segment is there before."""

    def __init__(self, bus_bytes: int, *, tag: ShapeLike = 0, splits: bool = True, blocked: bool = True) -> None:
        self.bus_bytes = bus_bytes
        self.address_bits = address_bits(bus_bytes)
        self.tag = tag
        self.blocked = blocked
        self.splits = splits and blocked
        self.wide = bus_bytes > TILE_BYTES
        self.shifts = splits
        super().__init__({
            "segments": In(stream.Signature(segment_layout(bus_bytes, tag, blocked=blocked))),
            "words": In(stream.Signature(8 * bus_bytes)),
            "o": Out(stream.Signature(write_layout(bus_bytes, tag, blocked=blocked))),
            "busy": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pixels, layout, pixel = (({"ends_pixel": 1}, {"layout": 1}, {"pixel": 12}) if self.blocked else ({}, {}, {}))
        part = Signal(StructLayout({
            "address": self.address_bits, "lane": range(self.bus_bytes), "less_one": range(self.bus_bytes),
            "takes_word": 1, **pixels, "last": 1, **layout, "fill": 1, "fresh": 1, **pixel, "value": 8, "tag": self.tag,
        }), reset_less=True)
        planned = Signal()  # part holds one
        placed = Signal()   # and it moves on
        room = Signal()     # in the register for a part
        m.d.comb += room.eq(~planned | placed)
        active = self._plan(m, part, planned, room)
        self._place(m, part, planned, placed)
        m.d.comb += self.busy.eq(active | planned | self.o.valid)
        return m

    def _plan(self, m: Module, part: Signal, planned: Signal, room: Value) -> Signal:
        """Cut the segment at hand into parts; return whether there is one."""
        segment = Signal(self.segments.payload.shape(), reset_less=True)
        lanes = exact_log2(self.bus_bytes)
        active, started, on_last_word = (Signal(name=name) for name in ("active", "started", "on_last_word"))
        lane, less_one = (Signal(lanes, name=name) for name in ("lane", "less_one"))  # this part's; its bytes, less one
        rest = word_rest = Signal(lanes, name="word_rest")  # bytes of the word from this lane on, less one
        ends_word, ends_pixel, ends_segment = (Signal(name=f"ends_{what}") for what in ("word", "pixel", "segment"))
        if self.wide:
            rest = Signal(lanes)
            cut, lanes_left = Signal(name="cut"), ~lane[:exact_log2(TILE_BYTES)]
            m.d.comb += [cut.eq(segment.narrow & (lanes_left < word_rest)), rest.eq(Mux(cut, lanes_left, word_rest))]
        m.d.comb += [
            word_rest.eq(Mux(on_last_word, segment.last_lane, self.bus_bytes - 1) - lane),
            ends_segment.eq(ends_word & on_last_word),
            self.segments.ready.eq(~active | (room & ends_segment)),
        ]
        if self.splits:
            pixel_rest = Signal(12)  # bytes of the pixel from here on, less one
            splits = Signal()
            m.d.comb += [
                splits.eq((segment.layout == BLOCKED) & (pixel_rest < rest)),
                ends_pixel.eq((segment.layout == BLOCKED) & (pixel_rest <= rest)),
                ends_word.eq(~splits & ~cut if self.wide else ~splits),
                less_one.eq(Mux(splits, pixel_rest, rest)),
            ]
        else:
            m.d.comb += [ends_word.eq(~cut if self.wide else 1), less_one.eq(rest)]

        with m.If(room):
            m.d.sync += [
                planned.eq(active),
                *[part[name].eq(segment[name]) for name in ("address", "layout", "fill", "pixel", "value", "tag")
                  if name in segment.shape().members],
                part.lane.eq(lane), part.less_one.eq(less_one),
                part.takes_word.eq(ends_word),
                *([part.ends_pixel.eq(ends_pixel)] if self.blocked else []),
                part.last.eq(ends_segment),
                part.fresh.eq(segment.fresh & ~started),
            ]
        with m.If(room & active):
            m.d.sync += started.eq(1)
            with m.If(ends_word):
                m.d.sync += [segment.words.eq(segment.words - 1), on_last_word.eq(segment.words == 2)]
            if self.splits:
                # Neither waits for which is the shorter: a part that ends no pixel has all that may leave at once, and
                # one that ends no word all that is left of the pixel.
                step = less_one if self.wide else pixel_rest[:lanes]
                m.d.sync += [
                    lane.eq(Mux(ends_word, 0, lane + step + 1)),
                    pixel_rest.eq(Mux(ends_pixel, segment.pixel, pixel_rest - rest - 1)),
                ]
            elif self.wide:
                m.d.sync += lane.eq(Mux(ends_word, 0, (lane | (TILE_BYTES - 1)) + 1))
            elif self.shifts:
                m.d.sync += lane.eq(0)
        self._take(m, segment, on_last_word, active=active, started=started, lane=lane,
                   pixel_rest=pixel_rest if self.splits else None)
        return active

    def _take(self, m: Module, segment: Signal, on_last_word: Signal, *, active: Signal, started: Signal, lane: Signal,
              pixel_rest: Signal | None) -> None:
        """Take the next segment as soon as the one at hand has been cut up."""
        with m.If(self.segments.ready):
            taken = self.segments.payload
            m.d.sync += [active.eq(self.segments.valid), segment.eq(taken), started.eq(0),
                         on_last_word.eq(taken.words == 1)]
            if self.shifts:
                m.d.sync += lane.eq(taken.first_lane)
            elif self.wide:
                m.d.sync += lane.eq(0)
            if pixel_rest is not None:
                with m.If(self.segments.valid & taken.fresh):
                    m.d.sync += pixel_rest.eq(taken.pixel)

    def _place(self, m: Module, part: Signal, planned: Value, placed: Signal) -> None:
        """Give each part its address and its bytes."""
        o = self.o.payload
        free = Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            placed.eq(planned & free & (part.fill | self.words.valid)),
            self.words.ready.eq(planned & free & ~part.fill & part.takes_word),
        ]
        # Address of this part and of the one that continues it.
        here = Signal(self.address_bits)
        following = Signal(self.address_bits)
        next_address = Signal(self.address_bits, reset_less=True)
        step = part.less_one + 1
        m.d.comb += here.eq(Mux(part.fresh, part.address, next_address))
        pixels = []
        if self.blocked:
            pixels = self._place_pixels(m, part, here, following)
        else:
            m.d.comb += following.eq(here + step)

        with m.If(free):
            m.d.sync += self.o.valid.eq(placed)
        with m.If(placed):
            shifted = self.words.payload
            if self.shifts:
                shifted = shifted >> (part.lane << 3)
            elif self.wide:     # words start at lane 0, and what is cut off them at multiples of 16
                shifted = shifted >> Cat(Const(0, 7), part.lane[exact_log2(TILE_BYTES):])
            m.d.sync += [
                next_address.eq(following),
                *pixels,
                *([o.layout.eq(part.layout)] if self.blocked else []),
                o.address.eq(here),
                o.count.eq(step),
                o.data.eq(Mux(part.fill, part.value.replicate(self.bus_bytes), shifted)),
                o.last.eq(part.last),
                o.tag.eq(part.tag),
            ]

    @staticmethod
    def _place_pixels(m: Module, part: Signal, here: Value, following: Signal) -> list[object]:
        """Find where the part behind this one goes, in either layout; return what is to be kept of this one."""
        corner = Signal(20)       # blocked: of the first byte of this pixel
        next_corner = Signal(20)  # and of the next
        held_corner = Signal(20, reset_less=True)
        step = part.less_one + 1
        m.d.comb += [
            corner.eq(Mux(part.fresh, part.address, held_corner)),
            # Banks 0 to 3 are a block's first row; behind column 3 lies the next block.
            next_corner.eq(Mux(corner[:2] == 3,
                               Cat(corner[:4] & 0b1100, (corner[4:] + part.pixel + 1)[:16]),
                               Cat((corner[:4] + 1)[:4], corner[4:]))),
        ]
        with m.If(part.layout == LINEAR):
            m.d.comb += following.eq(here + step)
        with m.Elif(part.ends_pixel):
            m.d.comb += following.eq(next_corner)
        with m.Else():
            m.d.comb += following.eq(Cat((here[:4] + step)[:4], (here[4:] + step)[:16]))
        return [held_corner.eq(Mux(part.ends_pixel, next_corner, corner))]
