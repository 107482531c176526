"""The pointer to the weights that a slot fetches."""

from amaranth import Module, Mux, Signal, Value

from tilewright.isa.machine import Machine
from tilewright.rtl.array.sequencer.kernel_walk import KernelWalk
from tilewright.rtl.array.sequencer.run_commands import PendingRun

__all__ = ["weight_pointer"]


def weight_pointer(m: Module, machine: Machine, pending: PendingRun, walk: KernelWalk, begin: Value) -> Signal:
    """Return the pointer to the weights, which begins anew with each tile group of a lane group.

    By channel it does so with each step: each lane has one kernel, or one pair of kernels.
    It counts kernels, or words, or of an array of inner products pairs of words, of kernels or not.
    """
    run, step, pairs, turns = walk.run, walk.step, walk.pairs, walk.turns
    pointer, lanes = (Signal(17, reset_less=True, name=name) for name in ("pointer", "lanes"))
    following = Signal(17)
    base = pending.run.weight_base
    fetches, ends_group, ends_lanes = step.slot < machine.fetch_slots, step.ends_group, step.ends_lanes
    if pairs is not None:
        base = Mux(pending.winograd, base, base >> 1)
        paired = run.winograd & ~step.four
        fetches = fetches & (~paired | pairs.odd | pairs.left.due)
        again = step.ends & ~pairs.odd & pairs.left.due & pairs.left.ends_group
        ends_group = Mux(paired, again, ends_group)
        ends_lanes = Mux(paired, again & pairs.left.ends_lanes, ends_lanes)
    elif machine.winograd:
        base = base << pending.winograd
    elif machine.inner:
        base = base >> 1
    if turns is not None:
        ends_group = ends_group | turns.on & step.ends
    m.d.comb += following.eq(pointer + fetches)
    with m.If(begin):
        m.d.sync += [pointer.eq(base), lanes.eq(base)]
    with m.Elif(step.go):
        m.d.sync += pointer.eq(Mux(ends_group & ~ends_lanes, lanes, following))
        with m.If(ends_lanes):
            m.d.sync += lanes.eq(following)
    return pointer
