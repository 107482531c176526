"""A cluster: lanes that share a weight memory and a weight transform."""

from amaranth import Cat, Module, Mux, Value
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out, PureInterface, connect, flipped

from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.rtl.arithmetic.winograd import DATA, VALUE, WeightTransform
from tilewright.rtl.array.inner_lane import InnerLane
from tilewright.rtl.array.lane import SUM, Lane
from tilewright.rtl.array.own_patches import own_layout
from tilewright.rtl.array.plain_lane import PlainLane
from tilewright.rtl.array.sequencer.slots import slot_of
from tilewright.rtl.array.winograd_inner_lane import WIDE_SUM, WinogradInnerLane, pairs_of
from tilewright.rtl.buffers.weight_buffer import WeightBuffer, fetch_layout, weight_write_signature
from tilewright.rtl.stream.stages import flow

__all__ = ["Cluster"]


class Cluster(Component):
    """Lanes in a row, each one cycle behind the one before it, on one weight memory.

    A step's first tile slots fetch the weights of lane 0, 1, 2 ..., one lane per cycle. The step's first slot passes
    from lane to lane at the same pace, so the weights that leave the transform in a cycle are those of the lane that
    loads weights in that cycle. A slot's data must come ``fetch_to_slot`` cycles after its fetch. The lanes
    of arrays without transforms take the weights as they are. An `InnerLane`, or a `WinogradInnerLane`, is two lanes of
    the machine, and what is fetched at a time are two runs, or two kernels.

    Parameters
    ----------
    machine : Machine
    index : int
        Number of the cluster.

    Members
    -------
    weight_write : ``In(weight_write_signature(machine))``
    fetch : ``In(flow(fetch_layout(machine)))``
    i : ``In(flow(...))``
        ``v`` (16 values, without transforms int8), ``slot``; with pairs of channels `pairs_of` it.
    own : ``In(own_layout(machine))``
        Of machines whose lanes may have patches of their own.
    complete : ``Out(1)``
        The finished sums of a tile group can be read in every lane.
    sums_address : ``In(4)``
    sums : ``Out(ArrayLayout(ArrayLayout(signed(32), 4), lanes_per_cluster))``
        Finished sums, read without delay; one for a tile of an array without transforms, not four; with pairs of
        channels of 34 bits.
    """

    def __init__(self, machine: Machine, index: int) -> None:
        self.machine = machine
        self.index = index
        self.fetch_to_slot = WeightBuffer.LATENCY + (WeightTransform.LATENCY if machine.winograd else 0)
        pixels, data = (4, DATA) if machine.winograd else (1, VALUE)
        total = WIDE_SUM if machine.pairs_channels else SUM
        slots = flow(StructLayout({"v": ArrayLayout(data, 16), "slot": slot_of(machine)}))
        super().__init__({
            "weight_write": In(weight_write_signature(machine)),
            "fetch": In(flow(fetch_layout(machine))),
            "i": In(pairs_of(slot_of(machine)) if machine.pairs_channels else slots),
            **({"own": In(own_layout(machine))} if machine.takes_four_patches else {}),
            "complete": Out(1),
            "sums_address": In(4),
            "sums": Out(ArrayLayout(ArrayLayout(total, pixels), machine.lanes_per_cluster)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.weights = weights = WeightBuffer(self.machine, self.index)
        connect(m, flipped(self.weight_write), weights.write)
        connect(m, flipped(self.fetch), weights.fetch)
        u: Value = weights.o.payload.weights
        if self.machine.pairs_channels:
            u = self._transform_pairs(m, weights)
        elif self.machine.winograd:
            m.submodules.transform = transform = WeightTransform()
            connect(m, weights.o, transform.i)
            u = transform.o.payload.u
        kinds: dict[str, type[Lane] | type[PlainLane] | type[InnerLane] | type[WinogradInnerLane]] = {
            "winograd": Lane, "plain": PlainLane, "inner": InnerLane, "winograd_inner": WinogradInnerLane}
        kind = kinds[self.machine.array]
        width = len(Value.cast(self.sums)) // self.machine.fetch_slots
        source = flipped(self.i)
        for number in range(self.machine.fetch_slots):
            m.submodules[f"lane_{number}"] = lane = kind(self.machine.tiles, slot_of(self.machine))
            if number and self.machine.takes_four_patches:
                self._take_own(m, number, source, lane)
            else:
                connect(m, source, lane.i)
            m.d.comb += [
                lane.u.eq(u),
                lane.sums_address.eq(self.sums_address),
                Value.cast(self.sums).word_select(number, width).eq(lane.sums),
            ]
            source = lane.o
        m.d.comb += self.complete.eq(lane.complete)
        return m

    def _take_own(self, m: Module, number: int, source: PureInterface, lane: Lane | WinogradInnerLane) -> None:
        """Connect a lane to the one before it, or to a patch of its own: the ``odd`` one where channels go in pairs."""
        own = self.own[number - 1]
        m.d.comb += [lane.i.valid.eq(source.valid), lane.i.payload.eq(source.payload)]
        with m.If(own.valid):
            m.d.comb += (lane.i.payload.odd if self.machine.pairs_channels else lane.i.payload.v).eq(own.v)

    def _transform_pairs(self, m: Module, buffer: WeightBuffer) -> Value:
        """Transform two kernels; of runs, give a lane the even bytes and the odd ones of both its channels."""
        fetched, dot, halves = buffer.o.payload.weights, buffer.o.payload.dot, []
        for number in range(len(fetched)):
            m.submodules[f"transform_{number}"] = transform = WeightTransform()
            runs = Cat(run[place] for run in fetched for place in range(number, TILE_BYTES, 2))
            m.d.comb += [
                transform.i.valid.eq(buffer.o.valid),
                transform.i.payload.dot.eq(dot),
                transform.i.payload.weights.eq(Mux(dot, runs, fetched[number].as_value())),
            ]
            halves.append(transform.o.payload.u.as_value())
        return Cat(halves)
