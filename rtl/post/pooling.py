"""Max pooling in place: each value meets every window that covers it, one read, compare and write per cycle."""

from collections.abc import Iterator, Mapping

from amaranth import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, StructLayout, View
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.post.axis_cursor import PoolingAxis
from tilewright.rtl.post.output_walker import OutputSteps, vector_layout
from tilewright.rtl.stream.stages import Pipeline, announced_flow, flow

__all__ = ["MaxPoolUnit", "WindowSteps", "slot_layout", "step_layout"]


def step_layout(machine: Machine) -> StructLayout:
    """Return the layout of a vector's meeting with one window."""
    vector = vector_layout(machine).members
    address_width = exact_log2(machine.result_bytes)
    return StructLayout({
        **{name: member for name, member in vector.items() if name not in ("y", "x")},
        "fresh": 1,
        "covered": 1,
        "first": 1,
        "y": address_width,
        "x": address_width,
    })


def slot_layout(machine: Machine) -> StructLayout:
    """Return the layout of the data that follow a step down the pipeline.

    ``address`` and ``count``: bytes of the result buffer; ``read``: they are read; ``merge``: the outcome is the
    maximum of them and the value; ``write``: the outcome is stored.  ``residual`` and ``signals`` are the user's. There
    is no flag for what the machine always or never does: without pooling every outcome is stored.
    """
    pooling, residual = machine.max_pooling, machine.residual_adder
    return StructLayout({
        "address": exact_log2(machine.result_bytes),
        "count": range(machine.post_lanes + 1),
        **({"read": 1} if pooling or residual else {}),
        **({"merge": 1, "write": 1} if pooling else {}),
        **({"residual": 1} if residual else {}),
        "signals": 2,
    })


class WindowSteps(Component):
    """Turn each vector into steps, one for each window that covers its pixel; one step per cycle, without gaps.

    The first step of a vector is ``fresh``, and the only one that needs its sums; the others follow at once.  A
    vector that no window covers makes one step, not ``covered``.  ``first``: the pixel is the window's first.
    The sum of ``y`` and ``x`` is the address of the window's result, without the slice.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    i : stream
        Vectors, as from `OutputWalker`.
    axes, output : In
        Windows along y and x, steps in the result buffer: must not change while ``busy``.
    o : stream
        The steps.
    busy : Out
        A vector is held.
    """

    LATENCY = 1

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        super().__init__({
            "i": In(stream.Signature(vector_layout(machine))),
            "axes": In(ArrayLayout(PoolingAxis, 2)),
            "output": In(OutputSteps),
            "o": Out(stream.Signature(step_layout(machine))),
            "busy": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if not self.machine.max_pooling:
            self._pass(m)
            return m
        axis_y, axis_x = self.axes
        vector = Signal.like(self.i.payload)
        back = Signal.like(vector.x)  # x of the first window
        fresh = Signal()
        y, x, o = vector.y, vector.x, self.o.payload
        # In registers: whether another vector is taken depends on them. All windows of a covered pixel cover it.
        covered = Signal()
        more_x = Signal()
        more_y = Signal()
        more_back = Signal()
        more = more_x | more_y
        incoming = self.i.payload
        covers = (incoming.y.inside < axis_y.kernel) & (incoming.x.inside < axis_x.kernel)
        m.d.comb += [
            *(o[name].eq(vector[name]) for name in vector.shape().members if name not in ("y", "x", "ends_run")),
            o.ends_run.eq(vector.ends_run & ~more),
            o.fresh.eq(fresh),
            o.covered.eq(covered),
            o.first.eq(((y.inside == 0) | y.edge) & ((x.inside == 0) | x.edge)),
            o.y.eq(y.address),
            o.x.eq(x.address),
            self.o.valid.eq(self.busy),
            self.i.ready.eq(~self.busy | (self.o.ready & ~more)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.busy.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += [
                    vector.eq(incoming), back.eq(incoming.x), fresh.eq(1), covered.eq(covers),
                    *(each.eq(covers & self._has_before(incoming.x, axis_x)) for each in (more_x, more_back)),
                    more_y.eq(covers & self._has_before(incoming.y, axis_y)),
                ]
        with m.Elif(self.o.ready):
            m.d.sync += fresh.eq(0)
            with m.If(more_x):
                m.d.sync += [*self._before(x, axis_x, self.output.pixel_step),
                             more_x.eq(self._has_second_before(x, axis_x))]
            with m.Else():
                m.d.sync += [x.eq(back), *self._before(y, axis_y, self.output.row_step),
                             more_x.eq(more_back), more_y.eq(self._has_second_before(y, axis_y))]
        return m

    def _pass(self, m: Module) -> None:
        """Make one step of each vector: without windows every pixel is one of its own."""
        vector = Signal.like(self.i.payload)
        o = self.o.payload
        shared = [name for name in vector.shape().members if name not in ("y", "x")]
        m.d.comb += [
            *(o[name].eq(vector[name]) for name in shared),
            o.fresh.eq(1),
            o.covered.eq(1),
            o.first.eq(1),
            o.y.eq(vector.y.address),
            o.x.eq(vector.x.address),
            self.o.valid.eq(self.busy),
            self.i.ready.eq(~self.busy | self.o.ready),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.busy.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += vector.eq(self.i.payload)

    @staticmethod
    def _has_before(place: View, axis: PoolingAxis) -> Value:
        """Return whether the window before the place's covers it too."""
        return (place.inside < axis.reach) & (place.window != 0)

    @staticmethod
    def _has_second_before(place: View, axis: PoolingAxis) -> Value:
        """Return whether the window before that one does."""
        return (place.inside + axis.stride < axis.reach) & (place.window > 1)

    @staticmethod
    def _before(place: View, axis: PoolingAxis, step: Value) -> list[object]:
        """Go to the window before."""
        return [
            place.window.eq(place.window - 1),
            place.inside.eq(place.inside + axis.stride),
            place.address.eq(place.address - step),
        ]


class MaxPoolUnit(Component):
    """Bring values together with the bytes where they go; one slot per cycle, no back-pressure.

    A slot enters at ``i``.  One cycle later it asks ``read`` for its bytes, if it wants them.  ``VALUE`` cycles after
    ``i`` it is at ``due``: then the bytes must be at ``old`` and the value at ``value``.  ``LATENCY`` cycles after
    ``i`` it is at ``o`` with ``data``: the value, or, if it has ``merge``, the maximum of value and bytes.

    A slot on its way may be waiting for the outcome of one of the ``WINDOW`` slots before it, which the read did not
    see.  Which, is known from the addresses before the read: two slots have the same address, or no byte in common.
    The outcome is picked up when it appears.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    i, due : flow
        Slots.
    read : flow
        ``address``, ``count``.
    old, value : In
        Lists of ``post_lanes`` signed bytes.
    o : announced flow
        ``slot``, ``data``.
    next_writes : Out
        In the next cycle there will be a slot with ``write`` at ``o``.
    """

    VALUE = 1 + ResultBuffer.READ_LATENCY
    LATENCY = VALUE + 2
    WINDOW = LATENCY - 1

    def __init__(self, machine: Machine) -> None:
        slot = slot_layout(machine)
        values = ArrayLayout(8, machine.post_lanes)
        self.machine = machine
        self.lanes = machine.post_lanes
        super().__init__({
            "i": In(flow(slot)),
            "read": Out(flow(StructLayout({name: slot.members[name] for name in ("address", "count")}))),
            "due": Out(flow(slot)),
            "old": In(values),
            "value": In(values),
            "o": Out(announced_flow(StructLayout({"slot": slot, "data": values}))),
            "next_writes": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outcome = Signal(self.value.shape(), reset_less=True)

        pipe = Pipeline(m, self.i.valid, prefix="slot_", slot=self.i.payload)
        stages = [(pipe.valid, pipe.slot)]  # the slot at each stage, first at the input
        for _ in range(self.LATENCY):
            pipe.step()
            stages.append((pipe.valid, pipe.slot))
        m.d.comb += [
            self.read.valid.eq(stages[1][0] & stages[1][1].read if "read" in self.i.payload.shape().members else 0),
            self.read.payload.address.eq(stages[1][1].address),
            self.read.payload.count.eq(stages[1][1].count),
            self.due.valid.eq(stages[self.VALUE][0]),
            self.due.payload.eq(stages[self.VALUE][1]),
            self.o.next.eq(stages[-2][0]),
            self.next_writes.eq(stages[-2][0] & (stages[-2][1].write if self.machine.max_pooling else 1)),
            self.o.valid.eq(stages[-1][0]),
            self.o.payload.slot.eq(stages[-1][1]),
            self.o.payload.data.eq(outcome),
        ]

        if not self.machine.max_pooling:
            held = Signal(self.value.shape(), reset_less=True)
            with m.If(stages[self.VALUE][0]):
                m.d.sync += held.eq(self.value)
            with m.If(stages[self.VALUE + 1][0]):
                m.d.sync += outcome.eq(held)
            return m

        # same[k]: the slot k before this one, counted at the input, writes what this one merges with.
        same = {}
        for distance in range(1, self.WINDOW + 1):
            valid, before = stages[distance]
            hit = Signal(name=f"same_{distance}_1")
            m.d.sync += hit.eq(self.i.valid & self.i.payload.merge & valid & before.write
                               & (self.i.payload.address == before.address))
            same[distance] = hit
        # At stage s the outcome that appears is that of the slot LATENCY - s before.
        picked, found = outcome, same[self.WINDOW]
        for stage in range(2, self.VALUE + 1):
            next_picked = Signal(self.old.shape(), name=f"picked_{stage}", reset_less=True)
            next_found = Signal(name=f"found_{stage}")
            m.d.sync += next_found.eq(found)
            with m.If(found):
                m.d.sync += next_picked.eq(picked)
            same = self._delay(m, {k: same[k] for k in same if k < self.LATENCY - stage + 1}, stage)
            hit = same[self.LATENCY - stage]
            picked, found = Mux(hit, outcome.as_value(), next_picked.as_value()), hit | next_found

        # Where the slot just before writes these bytes, the read may be older than a window's first pixel.
        merge = stages[self.VALUE][1].merge & ~same[1]
        older = Mux(found, picked, self.old.as_value())
        best = Signal(self.value.shape(), reset_less=True)
        same = self._delay(m, {1: same[1]}, self.VALUE + 1)
        with m.If(stages[self.VALUE][0]):
            m.d.sync += self._maximum(best, self.value, older, merge)
        with m.If(stages[self.VALUE + 1][0]):
            m.d.sync += self._maximum(outcome, best, outcome, same[1])
        return m

    @staticmethod
    def _delay(m: Module, flags: Mapping[int, Signal], stage: int) -> dict[int, Signal]:
        delayed = {}
        for distance, flag in flags.items():
            delayed[distance] = Signal(name=f"same_{distance}_{stage}")
            m.d.sync += delayed[distance].eq(flag)
        return delayed

    def _maximum(self, target: View, first: ValueLike, second: ValueLike, enable: Value) -> Iterator[object]:
        """Set each byte of ``target`` to the greater one, or to ``first``'s without ``enable``."""
        for lane in range(self.lanes):
            a, b = (Cat(word)[8 * lane : 8 * lane + 8].as_signed() for word in (first, second))
            yield target[lane].eq(Mux(enable & (b > a), b, a))
