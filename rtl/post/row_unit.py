"""Rows of the result buffer, softmax or normalised: passes in turn, through the value tables and the requantisers.

A row takes three passes: its largest element, the sum of its entries, its results. Rows take turns::

    row k      largest             sum                   results
    row k + 1            largest                 sum                   results
    row k + 2                            largest                 sum
               |-------- round --------|-------- round --------|

In a round the first pass reads a row from the result buffer, finds its largest element and keeps the row, and looks up
and adds the entries of the row kept before, which is read in the same cycles. The second pass reads the row before that
again and looks up its entries, which leave as sums of the array do, with the factor of the row as their scale.  So the
division by a row's sum (`RowFactor`) goes on during the passes of others, and the buffer is read twice for each row.

A normalisation takes the same passes, as if every row's largest element were 0: the table has the squares to add and
n times the elements, the division waits for a root (`RowSpread`), and two products an element stand before a result.
"""

from dataclasses import dataclass

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.limits import MAX_ROW_LENGTH, MAX_ROWS_AT_ONCE
from tilewright.isa.machine import Machine
from tilewright.isa.numerics import MANTISSA_BITS
from tilewright.isa.rows.row_norm import (
    GAIN_BITS,
    LONG_TERMS,
    MAX_NORM_LENGTH,
    PRODUCT_BITS,
    ROOT_BITS,
    ROOT_PLACES,
    SHIFT_PLACES,
    SPREAD_BITS,
    SQUARE_BITS,
    SUM_PLACES,
)
from tilewright.isa.rows.row_softmax import ENTRY_BITS
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.post.row_factor import RowFactor
from tilewright.rtl.post.row_spread import SUM_BITS, RowSpread
from tilewright.rtl.post.value_table import ValueTables
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["NORM_SETTINGS", "RowUnit", "row_values"]

NORM_SETTINGS = StructLayout({"extra": SPREAD_BITS, "offset": signed(PRODUCT_BITS), "parameter_base": 12,
                              "centred": 1, "fine": 1})
"""Operands of ``act.set_norm``."""

WORD_BITS = SQUARE_BITS + PRODUCT_BITS


def row_values(machine: Machine) -> StructLayout:
    """Return the layout of a vector of results on its way to the requantisers: where it goes, entries and scale."""
    lanes = machine.post_lanes
    return StructLayout({
        "address": exact_log2(machine.result_bytes), "count": range(lanes + 1), "final": 1,
        "entries": ArrayLayout(signed(WORD_BITS), lanes), "mantissa": MANTISSA_BITS, "shift": 7})


@dataclass(frozen=True, slots=True)
class _Walk:
    """A step: in the first pass of a round it may find a largest element, and add; in the second it gives results."""

    step: Signal
    second: Signal      # pass
    finds: Signal       # the round's first pass reads a row
    adds: Signal        # the round's first pass adds the entries of the row before
    gives: Signal       # the round has a second pass
    first: Value
    last: Value
    vector: Signal
    count: Value
    final: Value        # of the second passes
    credit: Signal


class RowUnit(Component):
    """Rewrite ``rows`` rows of ``length`` bytes that lie one behind the other; see `isa.rows`.

    Rate: a row of v vectors of ``post_lanes`` bytes every 2 v cycles, but not more often than ``granted_of`` says;
    no time depends on data. The unit cannot be held up: from ``start`` until ``busy`` is low, no other component
    may read the buffer or the tables, or give values to the requantisers.
    Latency: the first step comes a cycle behind ``start``; a vector's results are at ``o`` ``latency_of`` cycles
    behind their step, and ``NORM_STAGES`` more in a normalisation.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    start, base, length, rows, norm : In
        Begin; taken with ``start``.
    mantissa, shift, norms : In
        How many levels stand for 1, `NORM_SETTINGS`; must not change while the unit is busy.
    busy : Out
        From the cycle behind ``start`` until the last results are at ``o``.
    read : flow
        ``address`` and ``count`` of bytes of the result buffer.
    data : In
        The bytes, `ResultBuffer.READ_LATENCY` cycles later.
    index : flow
        Entries that are asked of the value tables, as words.
    entries : In
        Those entries, `ValueTables.LATENCY` cycles later.
    ask : flow
        Index of a vector of gains and shifts.
    gains, shifts : In
        Those gains and shifts, `ParameterBuffer.LATENCY` cycles later.
    looked_up : Out
        How many of them count, in the cycle of ``index``.
    o : flow
        `row_values`.
    """

    SETTLING = 3
    """From the last step that reads a row first to the next that reads it where it is kept."""

    NORM_STAGES = 3
    """From the entries of a normalisation to its results: difference, products, sum."""

    def __init__(self, machine: Machine) -> None:
        self.lanes = machine.post_lanes
        self.layout = row_values(machine)
        self.address_bits = exact_log2(machine.result_bytes)
        self.depth = exact_log2(self.lanes)     # of a tree over lanes
        super().__init__({
            "start": In(1),
            "base": In(self.address_bits),
            "length": In(range(MAX_ROW_LENGTH + 1)),
            "rows": In(range(MAX_ROWS_AT_ONCE + 1)),
            "norm": In(1),
            "mantissa": In(MANTISSA_BITS),
            "shift": In(7),
            "norms": In(NORM_SETTINGS),
            "busy": Out(1),
            "read": Out(flow(StructLayout({"address": self.address_bits, "count": range(self.lanes + 1)}))),
            "data": In(ArrayLayout(signed(8), self.lanes)),
            "index": Out(flow(ArrayLayout(8, self.lanes))),
            "entries": In(ArrayLayout(WORD_BITS, self.lanes)),
            "ask": Out(flow(range(machine.parameter_channels // self.lanes))),
            "gains": In(ArrayLayout(signed(GAIN_BITS), self.lanes)),
            "shifts": In(ArrayLayout(signed(GAIN_BITS), self.lanes)),
            "looked_up": Out(range(self.lanes + 1)),
            "o": Out(flow(self.layout)),
        })

    @property
    def comes(self) -> tuple[Value, Value]:
        """Return whether a vector of results is at ``o``, and whether it is the last."""
        return self.o.valid, self.o.payload.final

    @staticmethod
    def latency_of(machine: Machine) -> int:
        """Return the cycles from a step to its entries, and so to its results."""
        return 1 + ResultBuffer.READ_LATENCY + exact_log2(machine.post_lanes) + 2 + ValueTables.LATENCY

    @staticmethod
    def granted_of(machine: Machine) -> int:
        """Return the cycles from the last addition's step to the first in which results by its factor may begin.

        The factor stands by the time that they need it. A normalisation takes `RowSpread.CYCLES` more.
        """
        return exact_log2(machine.post_lanes) + RowFactor.CYCLES + 3

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.factor = factor = RowFactor()
        m.submodules.spread = spread = RowSpread()
        self._normalises = Signal()
        self._length = Signal(range(MAX_NORM_LENGTH + 1), reset_less=True)
        self._long = Signal(reset_less=True)
        with m.If(self.start):
            m.d.sync += [self._normalises.eq(self.norm), self._length.eq(self.length),
                         self._long.eq(self.length > LONG_TERMS)]
        latency = 1 + ResultBuffer.READ_LATENCY + self.depth + 2 + ValueTables.LATENCY
        granted = Signal()
        walk = self._walk(m, granted)
        # The quotient stands in the very cycle in which the first results by it come so far.
        assert latency + 1 < RowFactor.CYCLES
        m.d.sync += granted.eq(factor.left == latency + 1)
        pipe = Pipeline(m, walk.step, prefix="row_", second=walk.second, finds=walk.finds & ~walk.second,
                        adds=walk.adds & ~walk.second, behind=walk.adds, first=walk.first, last=walk.last,
                        vector=walk.vector, count=walk.count, final=walk.final)
        pipe.step()
        m.d.comb += self.read.valid.eq(pipe.valid & (pipe.second | pipe.finds))
        kept = self._keep(m, pipe)
        self._look_up(m, pipe, kept)
        self._results(m, pipe, factor, spread)
        self._add(m, pipe, factor, spread)
        return m

    def _walk(self, m: Module, granted: Signal) -> _Walk:
        """Walk over the passes of all rounds, and read what they read."""
        bits = exact_log2(self.lanes)
        vector, vectors = (Signal(range(MAX_ROW_LENGTH // self.lanes + 1), name=name, reset_less=True)
                           for name in ("vector", "vectors"))   # the latter less one
        tail = Signal(range(self.lanes + 1), reset_less=True)
        left = Signal(range(MAX_ROWS_AT_ONCE + 1))
        walks, second, finds, adds, gives, pending, credit = (
            Signal(name=name) for name in ("walks", "second", "finds", "adds", "gives", "pending", "credit"))
        step = Signal()
        settling = Signal(self.SETTLING - 1)
        first, last = vector == 0, vector == vectors
        count = Mux(last, tail, self.lanes)
        waits = Mux(second, first & ~credit, adds & ((last & pending) | (first & settling.any())))
        m.d.comb += step.eq(walks & ~waits)
        # A row is read from where it is kept only after it has been written there.
        m.d.sync += settling.eq(settling << 1 | (step & ~second & finds & last))
        ends = step & last & (second | ~gives)      # the round
        with m.If(step):
            m.d.sync += vector.eq(Mux(last, 0, vector + 1))
            with m.If(last):
                m.d.sync += second.eq(~second & gives)
        with m.If(ends):
            m.d.sync += [finds.eq(left != 0), left.eq(left - (left != 0)), adds.eq(finds), gives.eq(adds),
                         second.eq((left == 0) & ~finds), walks.eq((left != 0) | finds | adds)]
        with m.If(granted):
            m.d.sync += [pending.eq(0), credit.eq(1)]
        with m.If(step & ~second & adds & last):
            m.d.sync += pending.eq(1)
        with m.If(step & second & first):
            m.d.sync += credit.eq(0)
        with m.If(self.start):
            less_one = (self.length - 1)[:len(self.length)]
            m.d.sync += [vectors.eq(less_one >> bits), tail.eq(less_one[:bits] + 1), left.eq(self.rows - 1),
                         vector.eq(0), second.eq(0), finds.eq(1), adds.eq(0), gives.eq(0), walks.eq(1),
                         pending.eq(0), credit.eq(0)]
        final = ~finds & ~adds
        self._addresses(m, step, second, finds, count)
        return _Walk(step, second, finds, adds, gives, first, last, vector, count, final, credit)

    def _addresses(self, m: Module, step: Value, second: Value, finds: Value, count: Value) -> None:
        """Count through the rows of each pass, and register what is read."""
        places = [Signal(self.address_bits, name=f"{name}_place", reset_less=True) for name in ("found", "given")]
        for place, moves in zip(places, (step & ~second & finds, step & second), strict=True):
            with m.If(self.start):
                m.d.sync += place.eq(self.base)
            with m.Elif(moves):
                m.d.sync += place.eq(place + count)
        m.d.sync += [self.read.payload.address.eq(Mux(second, places[1], places[0])),
                     self.read.payload.count.eq(count)]

    def _keep(self, m: Module, pipe: Pipeline) -> list[Value]:
        """Go on to where the bytes have come; keep a row that is read first, return the vector of the one before."""
        memory = Memory(shape=8 * self.lanes, depth=(MAX_ROW_LENGTH + 1) // self.lanes, init=[])
        m.submodules.kept = memory
        read_port, write_port = memory.read_port(), memory.write_port()
        for _ in range(ResultBuffer.READ_LATENCY - 2):
            pipe.step()
        m.d.comb += [read_port.addr.eq(pipe.vector), read_port.en.eq(pipe.valid & pipe.adds)]
        pipe.step()
        kept = Signal(8 * self.lanes, name="kept_vector", reset_less=True)
        m.d.sync += kept.eq(read_port.data)     # nothing between the block RAM and its register
        pipe.step()
        m.d.comb += [write_port.addr.eq(pipe.vector), write_port.en.eq(pipe.valid & pipe.finds),
                     write_port.data.eq(self.data.as_value())]
        return [kept.word_select(lane, 8).as_signed() for lane in range(self.lanes)]

    def _look_up(self, m: Module, pipe: Pipeline, kept: list[Value]) -> None:
        """Find the largest element of a row, and ask for entries by how far elements are below that of theirs."""
        tops: list[Value] = [Mux(lane < pipe.count, self.data[lane], Const(-128, signed(8)))
                             for lane in range(self.lanes)]
        pipe.join(**{f"x_{lane}": Mux(pipe.second, self.data[lane], kept[lane]) for lane in range(self.lanes)})
        for level in range(self.depth):
            half = len(tops) // 2
            pipe.step(**{f"top_{level}_{k}": Mux(a > b, a, b)
                         for k, (a, b) in enumerate(zip(tops[:half], tops[half:], strict=True))})
            tops = [getattr(pipe, f"top_{level}_{k}") for k in range(half)]
        best, reference, before = (Signal(signed(8), name=name, reset_less=True)
                                   for name in ("best", "reference", "reference_before"))
        with m.If(pipe.valid & pipe.finds & (pipe.first | (tops[0] > best))):
            m.d.sync += best.eq(tops[0])
        with m.If(pipe.valid & pipe.adds & pipe.first):
            m.d.sync += [reference.eq(Mux(self._normalises, 0, best)), before.eq(reference)]
        pipe.step()
        own = Mux(pipe.second & pipe.behind, before, reference)
        pipe.step(**{f"index_{lane}": (own - getattr(pipe, f"x_{lane}"))[:8] for lane in range(self.lanes)})
        asks = pipe.valid & (pipe.second | pipe.adds)
        m.d.comb += [self.index.valid.eq(asks), self.looked_up.eq(Mux(asks, pipe.count, 0)),
                     *(self.index.payload[lane].eq(getattr(pipe, f"index_{lane}")) for lane in range(self.lanes))]

    def _results(self, m: Module, pipe: Pipeline, factor: RowFactor, spread: RowSpread) -> None:
        """Give the entries of second passes on, or what is made of them, with the factor of their row."""
        for _ in range(ValueTables.LATENCY - 1):
            pipe.step()
        begins = pipe.valid & pipe.second & pipe.first
        centre = Signal.like(spread.centre, name="row_centre", reset_less=True)
        odd = Signal(name="row_odd", reset_less=True)
        with m.If(begins):
            m.d.sync += [centre.eq(spread.centre), odd.eq(spread.odd)]
        m.d.comb += [self.ask.valid.eq(pipe.valid & pipe.second & self._normalises),
                     self.ask.payload.eq(self.norms.parameter_base[exact_log2(self.lanes):] + pipe.vector)]
        pipe.step()
        norm, norm_begins = self._norm(m, pipe, (centre, odd), spread)
        mantissa = Signal(MANTISSA_BITS, name="row_mantissa", reset_less=True)
        shift = Signal(7, name="row_shift", reset_less=True)
        with m.If(Mux(self._normalises, norm_begins, begins)):
            m.d.sync += [mantissa.eq(factor.factor), shift.eq(self.shift + factor.places)]
        o, place = self.o.payload, Signal(self.address_bits, name="result_place", reset_less=True)
        m.d.comb += [
            self.o.valid.eq(Mux(self._normalises, norm.valid, pipe.valid & pipe.second)), o.address.eq(place),
            o.count.eq(Mux(self._normalises, norm.count, pipe.count)),
            o.final.eq(Mux(self._normalises, norm.final, pipe.last & pipe.final)),
            *(o.entries[lane].eq(Mux(self._normalises, getattr(norm, f"sum_{lane}"), self.entries[lane][:ENTRY_BITS]))
              for lane in range(self.lanes)),
            o.mantissa.eq(mantissa), o.shift.eq(shift)]
        with m.If(self.start):
            m.d.sync += [place.eq(self.base), self.busy.eq(1)]
        with m.Elif(self.o.valid):
            m.d.sync += place.eq(place + o.count)
            with m.If(o.final):
                m.d.sync += self.busy.eq(0)

    def _norm(self, m: Module, pipe: Pipeline, middle: tuple[Value, Value],
              spread: RowSpread) -> tuple[Pipeline, Value]:
        """Multiply differences from the centre by gains, shifts by the root, and add: `NORM_STAGES` stages.

        The ``middle`` is the centre, and whether half of a gain, so shifted, is to be taken away besides.
        Return them, and whether the results of a row begin a cycle later. Each stage takes what is a row's own as its
        first vector comes there, since the last rows follow each other without a gap.
        """
        lanes, begins = range(self.lanes), pipe.valid & pipe.second & pipe.first
        norm = Pipeline(m, pipe.valid & pipe.second & self._normalises, prefix="norm_", count=pipe.count,
                        first=pipe.first, final=pipe.last & pipe.final)
        root = Signal(ROOT_BITS, name="row_root", reset_less=True)
        with m.If(begins):
            m.d.sync += root.eq(spread.root)
        centre, odd = middle
        norm.step(odd=odd, **{f"d_{lane}": self.entries[lane][SQUARE_BITS:].as_signed() - centre for lane in lanes})
        norm.step(**{f"a_{lane}": getattr(norm, f"d_{lane}") * self.gains[lane] for lane in lanes},
                  **{f"b_{lane}": self.shifts[lane] * root for lane in lanes},
                  **{f"half_{lane}": Mux(norm.odd, self.gains[lane][SUM_PLACES + 1:].as_signed(), 0) for lane in lanes})
        begins = norm.valid & norm.first
        # Of three summands synthesis would make an adder of logic: the shift keeps these apart.
        norm.step(**{f"sum_{lane}": ((getattr(norm, f"a_{lane}") + (getattr(norm, f"b_{lane}") >> SHIFT_PLACES)
                                      >> SUM_PLACES) - getattr(norm, f"half_{lane}"))[:WORD_BITS].as_signed()
                     for lane in lanes})
        assert norm.depth == self.NORM_STAGES
        return norm, begins

    def _add(self, m: Module, pipe: Pipeline, factor: RowFactor, spread: RowSpread) -> None:
        """Add up the entries of a row, or its elements below its squares, and have its factor made of the sum."""
        low = 8 + self.depth    # bits of the sum of a vector's elements
        squares = [Cat((getattr(pipe, f"x_{lane}") ^ 0x80)[:8], Const(0, self.depth), self.entries[lane][:SQUARE_BITS])
                   for lane in range(self.lanes)]
        terms: list[Value] = [Mux(lane < pipe.count, Mux(self._normalises, squares[lane],
                                                         self.entries[lane][:ENTRY_BITS]), 0)
                              for lane in range(self.lanes)]
        for level in range(self.depth):
            pipe.step(**{f"sum_{level}_{k}": a + b
                         for k, (a, b) in enumerate(zip(terms[::2], terms[1::2], strict=True))})
            terms = [getattr(pipe, f"sum_{level}_{k}") for k in range(len(terms) // 2)]
        total = Signal(RowFactor.TOTAL_BITS, reset_less=True)
        elements = Signal(SUM_BITS, reset_less=True)
        adds, first, starts = pipe.valid & pipe.adds, pipe.first, Signal(name="sums_stand")
        with m.If(adds):
            m.d.sync += total.eq(Mux(first, 0, total) + Mux(self._normalises, terms[0][low:], terms[0]))
            with m.If(self._normalises):
                m.d.sync += elements.eq(Mux(first, 0, elements) + terms[0][:low])
        m.d.sync += starts.eq(adds & pipe.last)
        m.d.comb += [
            spread.start.eq(starts & self._normalises), spread.length.eq(self._length), spread.sum.eq(elements),
            spread.squares.eq(total),
            *(getattr(spread, name).eq(self.norms[name]) for name in ("extra", "offset", "centred", "fine")),
            spread.long.eq(self._long),
            factor.start.eq(Mux(self._normalises, spread.done, starts)),
            factor.total.eq(Mux(self._normalises, spread.root << ROOT_PLACES, total)),
            factor.mantissa.eq(self.mantissa)]
