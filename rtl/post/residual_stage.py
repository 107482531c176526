"""The residual adders after the requantisers: vectors in, one adder for four values, vectors out."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.machine import Machine
from tilewright.rtl.arithmetic.residual_add import SETTINGS, ResidualAdd
from tilewright.rtl.post.pooling import slot_layout
from tilewright.rtl.stream.stages import announced_flow, flow

__all__ = ["ResidualStage"]


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
