"""The decoder of weights: bus words of `isa.coded.weight_code` in, the weights of a step out in each cycle.

Every lane holds two bus words of its nibbles, and where the first nibble lies that has not been used. Which lane asks
for the next word follows from what lanes hold alone, so the order of the words depends on no delay. In the cycle in
which a step *goes*, its lanes hold all that it takes; the word that is taken meanwhile is asked for by the step behind
it.
"""

from amaranth import Array, Cat, Const, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.isa.coded.weight_code import GROUP, MOST_WIDTH, WIDTHS, WIDTHS_BITS, WeightCode
from tilewright.isa.machine import Machine
from tilewright.rtl.stream.stages import flow

__all__ = ["WeightDecoder", "coded_block_layout"]

_NIBBLE = 4


def coded_block_layout(tag: ShapeLike) -> StructLayout:
    """Return the layout of a block: ``words`` coded bus words, decoded to ``steps`` steps for bus word ``index``."""
    return StructLayout({"index": 16, "steps": 16, "words": 16, "tag": tag})


class _Lane:
    """Two words of a lane, of which the oldest nibble that is left is the first of ``window``."""

    def __init__(self, number: int, nibbles: int) -> None:
        self.nibbles = nibbles
        bits = _NIBBLE * nibbles
        self.words = [Signal(bits, name=f"word_{number}_{k}", reset_less=True) for k in range(2)]
        self.held = Signal(range(2 * nibbles + 1), name=f"held_{number}")       # nibbles
        self.place = Signal(range(nibbles), name=f"place_{number}")             # of the first of them
        self.width = Signal(range(MOST_WIDTH + 1), name=f"width_{number}")      # of the group of the step that goes
        self.after = Signal(range(2 * nibbles + 1), name=f"after_{number}")     # nibbles held behind that step
        self.next_width = Signal(range(MOST_WIDTH + 1), name=f"next_width_{number}")
        self.lacks, self.room, self.gets = (Signal(name=f"{name}_{number}") for name in ("lacks", "room", "gets"))

    def window(self) -> Value:
        """Return the next eight nibbles, shifted by a power of two at a time."""
        found, length = Cat(self.words), 2 * self.nibbles
        for place in reversed(range(len(self.place))):
            length = MOST_WIDTH + (1 << place) - 1
            step = _NIBBLE << place
            found = Mux(self.place[place], found[step:step + _NIBBLE * length], found[:_NIBBLE * length])
        return found

    def connect(self, m: Module, go: Value, word: Value) -> None:
        """Keep what is held: less what a step takes that goes, and ``word`` where the lane gets it."""
        used = Mux(go, self.width, 0)
        m.d.comb += [
            self.after.eq(self.held - used),
            self.lacks.eq(self.after < Mux(go, self.next_width, self.width)),
            self.room.eq(self.after <= self.nibbles),
        ]
        m.d.sync += [
            self.held.eq(self.after + Mux(self.gets, self.nibbles, 0)),
            self.place.eq(self.place + used),
        ]
        first = Signal()
        fresh = Signal()
        m.d.comb += [first.eq((self.held > self.nibbles) & self.room), fresh.eq(self.gets & (self.after == 0))]
        with m.If(first | fresh):
            m.d.sync += self.words[0].eq(Mux(fresh, word, self.words[1]))
        with m.If(self.gets):
            m.d.sync += self.words[1].eq(word)


class WeightDecoder(wiring.Component):
    """Decode one block after the other; a step leaves two cycles after the words of all it takes have come.

    A word is taken in every cycle in which one is asked for and there. Words of a block that no lane asks for
    are taken and dropped; missing ones count as zeros.

    Parameters
    ----------
    machine : Machine
    tag
        Shape that rides along with a block.

    Members
    -------
    blocks : ``In(stream.Signature(coded_block_layout(tag)))``
    words : ``In(stream.Signature(8 * bus_bytes))``
    o : ``Out(flow(...))``
        The weights of a step, ``data``, for bus word ``index`` and where they are two the one behind it; ``last`` of a
        block; its ``tag``.
    busy : ``Out(1)``
        Not all words of a block have been taken, or not all steps gone; the last one's weights may still come.
    """

    LATENCY = 2
    """From the cycle in which a block is taken to its last weights, beyond the cycles of `isa.coded.weight_code`."""

    def __init__(self, machine: Machine, tag: ShapeLike) -> None:
        self.machine = machine
        self.code = WeightCode.of(machine)
        self.tag = tag
        super().__init__({
            "blocks": In(stream.Signature(coded_block_layout(tag))),
            "words": In(stream.Signature(8 * machine.bus_bytes)),
            "o": Out(flow(StructLayout({"index": 16, "data": 8 * machine.decoded_bytes, "last": 1, "tag": tag}))),
            "busy": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._lanes = [_Lane(number, self.code.word_nibbles) for number in range(self.code.lanes)]
        # A step goes; a block is at hand; the step that is due is the one ahead of the first; all steps have gone.
        self._go = Signal()
        self._active = Signal()
        self._ahead = Signal()
        self._done = Signal()
        self._left = Signal(16)                     # coded words of the block
        self._behind = Signal(16)                   # steps behind the one that is due
        self._ends = Signal()
        self._starts = Signal()
        self._word = Signal(8 * self.machine.bus_bytes)
        self._choices_get = Signal()
        m.d.comb += [
            self._ends.eq(self._go & (self._behind == 0)),
            self._starts.eq(self.blocks.valid & self.blocks.ready),
            self.blocks.ready.eq(~self._active | (self._ends & (self._left == 0))),
            self.busy.eq(self._active),
        ]
        choices_lack = self._choose(m)
        self._take_words(m, choices_lack)
        for lane in self._lanes:
            lane.connect(m, self._go, self._word)
        self._write(m)
        self._start(m)
        return m

    def _choose(self, m: Module) -> Value:
        """Keep the four widths and the choices; return whether those of the step behind the one that is due lack."""
        code = self.code
        choices = Signal(8 * self.machine.bus_bytes, reset_less=True)
        count = Signal(range(max(code.choices(first=each) for each in (False, True)) + 1))
        first = Signal()
        widths = [Signal(range(MOST_WIDTH + 1), name=f"width_choice_{k}", reset_less=True) for k in range(WIDTHS)]
        left = Signal.like(count)
        behind = Signal()
        m.d.comb += [
            left.eq(count - self._go),
            behind.eq(~((self._behind == 0) | (self._go & (self._behind == 1)))),
        ]
        for number, lane in enumerate(self._lanes):
            m.d.comb += lane.next_width.eq(Array(widths)[choices[2 * number:2 * number + 2]])
        with m.If(self._go):
            m.d.sync += [choices.eq(choices >> code.choice_bits), count.eq(left), self._behind.eq(self._behind - 1),
                         *[lane.width.eq(lane.next_width) for lane in self._lanes]]
        with m.If(self._choices_get):
            m.d.sync += [first.eq(0), choices.eq(self._word), count.eq(code.choices(first=False))]
            with m.If(first):
                m.d.sync += count.eq(code.choices(first=True))
                for k, width in enumerate(widths):
                    given = self._word[-WIDTHS_BITS:].word_select(k, 4)
                    m.d.sync += width.eq(Mux(given[3], MOST_WIDTH, given))
        with m.If(self._starts):
            m.d.sync += [first.eq(1), count.eq(0)]
        return (left == 0) & behind

    def _take_words(self, m: Module, choices_lack: Value) -> None:
        """Give a word to what asks for it first, and let the step that is due go when it lacks nothing more."""
        due = Signal()    # a step
        there = Signal()  # a word
        ended = Signal()  # there are no more of them
        lacking = [Signal(name="choices_lacking"), *[lane.lacks for lane in self._lanes]]
        lack = Signal()
        room = Signal()
        one = Signal()
        m.d.comb += [
            lacking[0].eq(choices_lack),
            due.eq(self._active & ~self._ends & ~self._done),
            ended.eq(self._left == 0),
            there.eq(self.words.valid | ended),
            lack.eq(Cat(lacking).any()),
            room.eq(Cat(lane.room for lane in self._lanes).any()),
            one.eq(~Cat(lacking[k] & lacking[j] for k in range(len(lacking)) for j in range(k)).any()),
            self._word.eq(Mux(ended, 0, self.words.payload)),
            self.words.ready.eq(~ended & Mux(due, lack | room, self._active)),
            self._choices_get.eq(due & there & choices_lack),
        ]
        before, before_room = choices_lack, lack
        for lane in self._lanes:
            m.d.comb += lane.gets.eq(due & there & Mux(lack, lane.lacks & ~before, lane.room & ~before_room))
            before, before_room = before | lane.lacks, before_room | lane.room
        m.d.sync += self._go.eq(due & (there | ~(lack | room)) & one)
        with m.If(self.words.valid & self.words.ready):
            m.d.sync += self._left.eq(self._left - 1)

    def _write(self, m: Module) -> None:
        """Take the weights of a step that goes out of its nibbles."""
        o, valid = self.o.payload, Signal(name="valid")
        index = Signal(16, reset_less=True)
        tag = Signal(self.tag, reset_less=True)
        m.d.sync += [valid.eq(self._go & ~self._ahead), o.last.eq(self._ends)]
        m.d.comb += [self.o.valid.eq(valid), o.index.eq(index), o.tag.eq(tag)]
        data = []
        for number, lane in enumerate(self._lanes):
            planes = Signal(_NIBBLE * MOST_WIDTH, name=f"planes_{number}", reset_less=True)
            there = Signal(MOST_WIDTH, name=f"there_{number}", reset_less=True)
            m.d.sync += [planes.eq(lane.window()), there.eq(Cat([lane.width > p for p in range(MOST_WIDTH)]))]
            for f in range(GROUP):
                low = planes[f] & there[0]
                data.append(Cat(*[(planes[_NIBBLE * p + f] & there[p]) ^ low for p in range(1, MOST_WIDTH)], low))
        m.d.comb += o.data.eq(Cat(data))
        with m.If(valid):
            m.d.sync += index.eq(index + self.machine.decoded_bytes // self.machine.bus_bytes)
        # A block may be taken while the last of the one before goes, whose weights leave in the next cycle.
        begins = Signal()
        next_index = Signal(16, reset_less=True)
        next_tag = Signal(self.tag, reset_less=True)
        with m.If(self._starts):
            m.d.sync += [next_index.eq(self._aligned(self.blocks.payload.index)),
                         next_tag.eq(self.blocks.payload.tag)]
        m.d.sync += begins.eq(self._starts)
        with m.If(begins):
            m.d.sync += [index.eq(next_index), tag.eq(next_tag)]

    def _aligned(self, index: Value) -> Value:
        bits = exact_log2(self.machine.decoded_bytes // self.machine.bus_bytes)
        return Cat(Const(0, bits), index[bits:]) if bits else index

    def _start(self, m: Module) -> None:
        """Take a block; forget the last one when its words have all come and its steps all gone."""
        with m.If(self._ends):
            m.d.sync += self._done.eq(1)
        with m.If((self._done | self._ends) & (self._left == 0)):
            m.d.sync += [self._active.eq(0), self._done.eq(0)]
        with m.If(self._go):
            m.d.sync += self._ahead.eq(0)
        block = self.blocks.payload
        with m.If(self._starts):
            m.d.sync += [self._active.eq(1), self._done.eq(0), self._ahead.eq(1), self._left.eq(block.words),
                         self._behind.eq(block.steps),
                         *[each.eq(0) for lane in self._lanes for each in (lane.held, lane.place, lane.width)]]
