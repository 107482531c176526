"""Arrays of the inner product without sequencer and buffers: lanes in a row, xi beside them, sums on their way out."""

from amaranth import Cat, Module
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.arithmetic.winograd import VALUE, InputTransform, WeightTransform
from tilewright.rtl.array.inner_lane import CHANNELS, InnerLane, RunXiLane
from tilewright.rtl.array.inner_sums import RunSumsOut, TileSumsOut
from tilewright.rtl.array.sequencer.slots import DEPTH, PairSlot, Slot
from tilewright.rtl.array.winograd_inner_lane import TileXiLane, WinogradInnerLane
from tilewright.rtl.stream.stages import flow

MULTIPLIERS = 16


class RunArray(Component):
    """Lanes of `InnerLane`; ``u`` are the weights of the lane whose slot loads them in the cycle.

    ``address`` and ``slice`` choose ``post_lanes`` channels of a tile, whose sums are at ``values`` a cycle later.
    """

    weights_ahead = 0

    def __init__(self, lanes, tiles, post_lanes):
        self.lanes, self.tiles, self.post_lanes = lanes, tiles, post_lanes
        self.out = RunSumsOut(post_lanes)
        super().__init__({
            "i": In(flow(StructLayout({"v": ArrayLayout(VALUE, 16), "slot": Slot}))),
            "u": In(ArrayLayout(ArrayLayout(VALUE, 16), CHANNELS)),
            "complete": Out(1),
            "address": In(4),
            "slice": In(4),
            "values": Out(self.out.o.payload.values.shape()),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.xi = xi = RunXiLane(self.tiles)
        m.submodules.out = out = self.out
        lanes = _chain(m, self, [InnerLane(self.tiles) for _ in range(self.lanes)], xi, self.i)
        m.d.comb += [lane.u.eq(self.u) for lane in lanes]
        sums = Cat(lane.sums for lane in lanes)
        m.d.comb += [
            out.i.valid.eq(1),
            out.i.payload.sums.eq(sums.word_select(self.slice, 32 * self.post_lanes)),
            out.i.payload.xi.eq(xi.sums[0]),
            self.values.eq(out.o.payload.values),
        ]
        return m


class TileArray(Component):
    """Lanes of `WinogradInnerLane` behind two transforms of each kind.

    ``i`` brings the bytes ``even`` and ``odd``, ``u`` the weights of the lane whose slot loads them, ``weights_ahead``
    cycles earlier than in `RunArray`. ``winograd``, ``pixel`` and ``slice`` choose sums.
    """

    weights_ahead = WeightTransform.LATENCY - InputTransform.LATENCY

    def __init__(self, lanes, tiles, post_lanes):
        self.lanes, self.tiles, self.post_lanes = lanes, tiles, post_lanes
        self.out = TileSumsOut(post_lanes)
        pair = StructLayout({"even": ArrayLayout(VALUE, 16), "odd": ArrayLayout(VALUE, 16)})
        super().__init__({
            "i": In(flow(StructLayout({**pair.members, "slot": PairSlot}))),
            "u": In(pair),
            "u_dot": In(1),
            "complete": Out(1),
            "address": In(4),
            "winograd": In(1),
            "pixel": In(2),
            "slice": In(4),
            "values": Out(self.out.o.payload.values.shape()),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.xi = xi = TileXiLane(self.tiles)
        m.submodules.out = out = self.out
        chain = [WinogradInnerLane(self.tiles) for _ in range(self.lanes)]
        joined = flow(chain[0].i.payload.shape()).create(path=("joined",))
        for name in ("even", "odd"):
            m.submodules[f"input_{name}"] = transform = InputTransform(PairSlot)
            m.submodules[f"weight_{name}"] = weights = WeightTransform()
            m.d.comb += [
                transform.i.valid.eq(self.i.valid),
                transform.i.payload.patch.eq(self.i.payload[name]),
                transform.i.payload.present.eq(self.i.payload.slot.present),
                transform.i.payload.dot.eq(self.i.payload.slot.dot),
                transform.i.payload.meta.eq(self.i.payload.slot),
                joined.payload[name].eq(transform.o.payload.v),
                weights.i.valid.eq(1),
                weights.i.payload.weights.eq(self.u[name]),
                weights.i.payload.dot.eq(self.u_dot),
                *(lane.u[name].eq(weights.o.payload.u) for lane in chain),
            ]
        # Both transforms delay a slot alike: what rides with the last one is that of both.
        m.d.comb += [joined.valid.eq(transform.o.valid), joined.payload.slot.eq(transform.o.payload.meta)]
        lanes = _chain(m, self, chain, xi, joined)
        sums = Cat(lane.sums for lane in lanes)
        # A lane of two channels is the least that is chosen.
        single = self.post_lanes == 1
        m.d.comb += [
            out.i.valid.eq(1),
            out.i.payload.sums.eq(sums.word_select(self.slice >> single, len(out.i.payload.sums.as_value()))),
            out.i.payload.second.eq(self.slice[0] & single),
            out.i.payload.xi.eq(xi.sums),
            out.i.payload.winograd.eq(self.winograd),
            out.i.payload.pixel.eq(self.pixel),
            self.values.eq(out.o.payload.values),
        ]
        return m


def _chain(m, array, lanes, xi, source):
    """Connect ``lanes`` in a row behind ``source``, and xi beside the first."""
    m.d.comb += [xi.i.valid.eq(source.valid), xi.i.payload.eq(source.payload), xi.sums_address.eq(array.address)]
    for number, lane in enumerate(lanes):
        m.submodules[f"lane_{number}"] = lane
        m.d.comb += [lane.i.valid.eq(source.valid), lane.i.payload.eq(source.payload),
                     lane.sums_address.eq(array.address)]
        source = lane.o
    m.d.comb += array.complete.eq(lanes[-1].complete)
    return lanes


def slots_of(data, tiles, *, dot, channels=1):
    """Return (payload, step) of every slot for ``data`` (groups, steps, tiles) of dicts: a slot for each tile.

    With two ``channels`` each step is there for the first and for the second ones, and has weights for both.
    """
    slots = []
    for group in data:
        for step, present in enumerate(group):
            last = step == len(group) - 1
            for second in range(channels):
                slots += [(values | {"slot": {
                    "present": 1, "tile": tile, "load": tile == 0, "clear": step == 0, "finish": last,
                    "complete": last and second == channels - 1 and tile == tiles - 1, "dot": dot,
                    **({"second": second} if channels > 1 else {})}}, channels * step + second)
                    for tile, values in enumerate(present)]
    return slots


async def issue(ctx, array, slots, weights):
    """Send a slot per cycle, and ``weights[step][lane]`` to the lane that loads; return the cycles of ``complete``."""
    ahead, seen = array.weights_ahead, []
    nothing = {name: [85] * 16 for name in ("even", "odd")} if ahead else [[85] * 16] * CHANNELS
    for cycle in range(len(slots) + array.lanes + 16):
        at = cycle - ahead
        ctx.set(array.i.valid, 0 <= at < len(slots))
        if 0 <= at < len(slots):
            ctx.set(array.i.payload, slots[at][0])
        u = nothing     # counts only in slots that load
        for lane in range(array.lanes):
            if 0 <= cycle - lane < len(slots):
                payload, step = slots[cycle - lane]
                u = weights[step][lane] if payload["slot"]["load"] else u
        ctx.set(array.u, u)
        if ctx.get(array.complete):
            seen.append(cycle)
        await ctx.tick()
    return seen


async def read(ctx, array, address, **choice):
    """Return the ``post_lanes`` values of a tile that ``choice`` names, as a list."""
    ctx.set(array.address, address)
    for name, value in choice.items():
        ctx.set(getattr(array, name), value)
    await ctx.tick().repeat(array.out.LATENCY)
    return [ctx.get(array.values[k]) for k in range(array.post_lanes)]


def groups_that_fit(tiles):
    """Return how many tile groups of finished sums a lane keeps."""
    return DEPTH // tiles
