"""The residual adders after the requantisers: vectors in, one adder for four values, vectors out."""

from collections.abc import Mapping
from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib.data import ArrayLayout, StructLayout, View
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import Component, In, Out, PureInterface

from tilewright.isa.machine import Machine
from tilewright.rtl.arithmetic.residual_add import SETTINGS, ResidualAdd
from tilewright.rtl.post.mapping_stage import MappingStage, NoMapping
from tilewright.rtl.post.pooling import slot_layout
from tilewright.rtl.stream.stages import announced_flow, flow

__all__ = ["NoResiduals", "ResidualStage", "Residuals", "Results"]


@dataclass(frozen=True, slots=True)
class Results:
    """Results to be written next: their data and slot, and, a cycle ahead, that they come and that they are written."""

    payload: Value
    next: Value
    next_writes: Value


class ResidualStage(Component):
    """Add a vector of ``post_lanes`` values and one of residuals, a few at a time.

    Takes a vector every ``interval`` cycles at most; it leaves ``latency`` cycles later, with its slot.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    settings : SETTINGS
        Of the adders; must not change while anything is on its way.
    own_second : In
        The values are the second operand of the add, the residuals the first.
    i : flow
        ``slot``, the bytes ``own`` and ``residual``.
    o : announced flow
        ``slot``, ``data``: the sums; those beyond the slot's count mean nothing.
    """

    LATENCY = ResidualAdd.LATENCY + 1
    """Of a vector, less the interval."""

    @staticmethod
    def interval_of(machine: Machine) -> int:
        """Return the least cycles from one vector to the next."""
        return machine.post_lanes // max(1, machine.post_lanes // 4)

    def __init__(self, machine: Machine) -> None:
        self.lanes = machine.post_lanes
        self.interval = self.interval_of(machine)
        self.adders = self.lanes // self.interval
        self.latency = self.interval + self.LATENCY
        self.slot = slot_layout(machine)
        values = ArrayLayout(8, self.lanes)
        super().__init__({
            "settings": In(SETTINGS),
            "own_second": In(1),
            "i": In(flow(StructLayout({"slot": self.slot, "own": values, "residual": values}))),
            "o": Out(announced_flow(StructLayout({"slot": self.slot, "data": values}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = 8 * self.adders
        request = self.i.payload
        own, residual = request.own.as_value(), request.residual.as_value()
        first = Signal(8 * self.lanes, reset_less=True)
        second = Signal(8 * self.lanes, reset_less=True)
        feeding = Signal(self.interval)  # one-hot: the part of the vector that goes to the adders
        m.d.sync += feeding.eq(feeding << 1)
        with m.If(self.i.valid):
            m.d.sync += [
                feeding.eq(1),
                first.eq(Mux(self.own_second, residual, own)),
                second.eq(Mux(self.own_second, own, residual)),
            ]
        with m.Elif(feeding.any()):
            m.d.sync += [first.eq(first >> bits), second.eq(second >> bits)]

        sums = []
        for lane in range(self.adders):
            m.submodules[f"add_{lane}"] = adder = ResidualAdd(1)
            m.d.comb += [
                adder.settings.eq(self.settings),
                adder.i.valid.eq(feeding.any()),
                adder.i.payload.a.eq(first.word_select(lane, 8)),
                adder.i.payload.b.eq(second.word_select(lane, 8)),
                adder.i.payload.meta.eq(feeding[-1]),
            ]
            sums.append(adder.o.payload.value)
        data = Signal(8 * self.lanes, reset_less=True)
        with m.If(adder.o.valid):
            m.d.sync += data.eq(Cat(data, *sums)[bits:])
        m.d.comb += self.o.next.eq(adder.o.valid & adder.o.payload.meta)
        m.d.sync += self.o.valid.eq(self.o.next)

        # Slots wait in a queue: there are fewer of them on their way than stages.
        m.submodules.slots = slots = SyncFIFOBuffered(width=self.slot.size, depth=self.latency // self.interval + 1)
        m.d.comb += [
            slots.w_en.eq(self.i.valid),
            slots.w_data.eq(request.slot),
            slots.r_en.eq(self.o.valid),
            self.o.payload.slot.eq(slots.r_data),
            self.o.payload.data.eq(data),
        ]
        return m


class NoResiduals:
    """Post-processing of a machine without residual adders: what leaves the pool is written."""

    sums = None

    def set(self, scale: View, offset: Mapping[str, Value]) -> None:
        """Set nothing."""

    def add(self, due: PureInterface, value: Value, residual: Value, mapping: MappingStage | NoMapping) -> None:
        """Add nothing."""

    def results(self, kind: View, pooled: Results, mapping: MappingStage | NoMapping) -> Results:
        """Return what is written: what leaves the pool."""
        return pooled

    def count(self, kind: View, values: Value, total: Signal, mapped: Value) -> Value:
        """Return how many values a table maps: ``mapped``, as of any other run."""
        return mapped


class Residuals:
    """The stage among its neighbours: a vector whose residual is ``due`` is added, and not pooled, but written."""

    def __init__(self, m: Module, machine: Machine) -> None:
        self._m = m
        m.submodules.residual = self._stage = ResidualStage(machine)
        self.sums = self._stage.o

    def set(self, scale: View, offset: Mapping[str, Value]) -> None:
        """Give the adders the operands of act's residual settings."""
        settings = self._stage.settings
        self._m.d.comb += [
            *(settings[name].eq(scale[name]) for name in scale.shape().members),
            *(settings[name].eq(offset[name]) for name in offset if name in SETTINGS.members),
            settings.low.eq(offset["residual_low"]),
            settings.high.eq(offset["residual_high"]),
            self._stage.own_second.eq(offset["own_second"]),
        ]

    def add(self, due: PureInterface, value: Value, residual: Value, mapping: MappingStage | NoMapping) -> None:
        """Take the vectors that are due, mapped or not, if theirs is a run with residual."""
        taken = self._stage.i
        self._m.d.comb += [
            taken.valid.eq(due.valid & due.payload.residual),
            taken.payload.slot.eq(due.payload),
            Cat(taken.payload.own).eq(mapping.own(value)),
            Cat(taken.payload.residual).eq(residual),
        ]

    def results(self, kind: View, pooled: Results, mapping: MappingStage | NoMapping) -> Results:
        """Return what leaves the pool, or in its place what was added, mapped or not.

        A register here says a cycle ahead which of both it is: the residuals of the load wait for it.
        """
        self._added = added = mapping.sums(self.sums)
        adds = Signal(name="adds")
        self._m.d.sync += adds.eq(kind.residual)
        return Results(
            Mux(adds, added.payload.as_value(), pooled.payload), Mux(kind.residual, added.next, pooled.next),
            Mux(kind.residual, added.next, pooled.next_writes))

    def count(self, kind: View, values: Value, total: Signal, mapped: Value) -> Value:
        """Count in ``total`` how many ``values`` were added; return how many a table maps, ``mapped`` of other runs."""
        self._m.d.comb += total.eq(Mux(self._added.valid, values, 0))
        return Mux(kind.residual, total, mapped)
