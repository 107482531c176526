"""The slot that is due, and the request and the fetch that it becomes."""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import PureInterface

from tilewright.isa.machine import PATCHES, TILE_BYTES, Machine
from tilewright.rtl.array.sequencer.kernel_walk import KernelWalk
from tilewright.rtl.array.sequencer.slots import slot_of
from tilewright.rtl.array.sequencer.tile_walker import TileWalker
from tilewright.rtl.stream.stages import Pipeline

__all__ = ["KERNEL_BYTES", "activation_bytes", "due_slot", "has_tile", "send", "weight_bytes"]

KERNEL_BYTES = 9


def due_slot(m: Module, machine: Machine, walker: TileWalker, walk: KernelWalk) -> View:
    """Return the slot that is due."""
    run, step, pairs, planes = walk.run, walk.step, walk.pairs, walk.planes
    info = Signal(slot_of(machine))
    m.d.comb += [
        info.present.eq(step.slot <= walker.group.last_tile),
        info.tile.eq(step.slot), info.load.eq(step.slot == 0),
        info.clear.eq(planes.clears(step.first, run)),
        info.finish.eq(planes.in_end(step.last & ~run.hold)),
        info.complete.eq(planes.in_end(step.ends_group & ~run.hold)),
        *planes.shifts(info, step.first),
        *([info.dot.eq(~run.winograd)] if machine.winograd else []),
    ]
    if pairs is not None:
        left = pairs.left
        m.d.comb += info.arrives.eq((step.slot <= walker.group.last_tile) & ~pairs.flushing)
        with m.If(run.winograd):
            m.d.comb += [info.complete.eq(step.four & step.ends_group & ~run.hold),
                         info.clear.eq(planes.clears(pairs.first, run)), *planes.shifts(info, pairs.first)]
            if machine.takes_four_patches:
                with m.If(step.four):
                    m.d.comb += [info.second.eq(pairs.odd), info.finish.eq(step.last_column & ~run.hold)]
            with m.If(~pairs.odd & ~step.four):
                m.d.comb += [
                    info.second.eq(1), info.present.eq(left.due & (step.slot <= left.last_tile)),
                    info.load.eq((step.slot == 0) & left.due),
                    *(info[name].eq(left[name]) for name in ("clear", "finish")),
                    *([info.shift.eq(planes.left_shift)] if planes.there else []),
                    info.complete.eq(step.ends & left.due & left.finish),
                ]
    return info


def send(m: Module, machine: Machine, pipe: Pipeline, request: PureInterface, fetch: PureInterface) -> None:
    """Send the slot in ``pipe`` as a request to the activation buffer and a fetch to the weight buffers."""
    _request(m, machine, pipe, request)
    _fetch(m, machine, pipe, fetch)


def has_tile(machine: Machine, pipe: Pipeline) -> Value:
    """Return whether the slot in ``pipe`` has a tile, which is read."""
    return pipe.slot.arrives if machine.pairs_channels else pipe.slot.present


def activation_bytes(machine: Machine, pipe: Pipeline) -> Value | int:
    """Return how many bytes its tile is."""
    size: Value | int = Mux(pipe.tile.reuse, TILE_BYTES // 2, TILE_BYTES) if machine.reuses_columns else TILE_BYTES
    return Mux(pipe.four, PATCHES * TILE_BYTES, size) if machine.takes_four_patches else size


def weight_bytes(machine: Machine, pipe: Pipeline) -> Value | int:
    """Return how many bytes its fetch brings."""
    run = TILE_BYTES * machine.clusters * machine.lanes_per_fetch
    kernel: Value | int = KERNEL_BYTES * machine.clusters * machine.lanes_per_fetch
    if machine.takes_channel_kernels:
        four = pipe.four if machine.takes_four_patches else Const(0)
        its_turn = four | ((pipe.turn & (machine.fetch_slots - 1)) == pipe.slot.tile)
        kernel = Mux(pipe.by_channel, Mux(its_turn, KERNEL_BYTES * machine.lanes_per_fetch, 0), kernel)
    return Mux(~pipe.slot.dot, kernel, run) if machine.winograd else run


def _request(m: Module, machine: Machine, pipe: Pipeline, target: PureInterface) -> None:
    """Ask the activation buffer for the tile: its words, and how they make a tile or a patch."""
    request = target.payload
    m.d.comb += [
        target.valid.eq(pipe.valid),
        request.present.eq(has_tile(machine, pipe)),
        request.rotation.eq(pipe.rotation),
        request.word.eq(pipe.address[4:]),
        request.meta.eq(pipe.slot),
    ]
    if machine.winograd:  # patches, in the blocked layout
        m.d.comb += [
            request.linear.eq(pipe.slot.dot),
            request.reuse.eq(pipe.tile.reuse),
            request.half_x.eq(pipe.tile.half_x),
            request.half_y.eq(pipe.tile.half_y),
            request.right.eq(pipe.right),
            request.diagonal.eq(pipe.diagonal),
        ]
    if "below" in request.shape().members:
        m.d.comb += request.below.eq(pipe.below)
    if machine.takes_four_patches:
        m.d.comb += request.four.eq(pipe.four)


def _fetch(m: Module, machine: Machine, pipe: Pipeline, target: PureInterface) -> None:
    """Ask the weight buffers for what the slot brings to the lanes."""
    fetch = target.payload
    m.d.comb += [
        target.valid.eq(pipe.valid & pipe.fetches),
        fetch.pointer.eq(pipe.pointer),
        fetch.lane.eq(pipe.slot.tile),
        fetch.pool.eq(pipe.pool),
    ]
    if machine.lane_runs > 1:
        m.d.comb += fetch.part.eq(pipe.part)
    if machine.winograd:
        m.d.comb += [fetch.fresh.eq(pipe.fresh), fetch.winograd.eq(~pipe.slot.dot)]
    if machine.takes_channel_kernels:
        m.d.comb += [fetch.by_channel.eq(pipe.by_channel), fetch.turn.eq(pipe.turn)]
    if machine.takes_four_patches:
        m.d.comb += fetch.four.eq(pipe.four)
    if "second" in fetch.shape().members:
        m.d.comb += fetch.second.eq(pipe.slot.second)
