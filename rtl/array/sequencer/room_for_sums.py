"""Room among the sums of a lane: how many tile groups have finished sums, and whether those of a command leave at once.

Two counts hear of the last event a cycle late; what comes late only selects.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View

from tilewright.isa.machine import LIMITS, Machine
from tilewright.rtl.array.sequencer.kernel_step import KernelStep, PairStep
from tilewright.rtl.array.sequencer.plane_turns import PlaneTurns
from tilewright.rtl.array.sequencer.run_commands import ArrayRun
from tilewright.rtl.array.sequencer.slots import DEPTH

__all__ = ["MOST_UNDER_WAY", "drained_sums", "no_room", "without_old_sums"]

MOST_TILES = LIMITS["tiles"][1]
MOST_UNDER_WAY = 32
"""Tile groups whose sums are not finished, at most: one a cycle, and fewer cycles than this."""


def no_room(m: Module, machine: Machine, step: KernelStep, run: ArrayRun, planes: PlaneTurns,
            sums_done: Value) -> Value:
    """Count the tile groups that have, or will have, finished sums; return whether there is no room for one."""
    groups = DEPTH // machine.tiles
    # But for one that is taken in the cycle before: that is known late.
    taken = Signal(range(groups + (MOST_UNDER_WAY if machine.takes_whole_tiles else 0) + 1))
    took, done = Signal(name="took"), sums_done
    full = Signal(name="full")                                      # ``taken`` are as many as there may be
    nearly = Signal(name="nearly_full", init=int(groups == 1))      # or one less
    m.d.sync += [
        took.eq(planes.in_end(step.go & step.finishes & (step.slot == 0) & ~run.hold)),
        # What comes late only selects.
        full.eq(Mux(done, Mux(took, taken >= groups, taken > groups),
                    Mux(took, taken >= groups - 1, taken >= groups))),
        nearly.eq(Mux(done, Mux(took, taken >= groups - 1, taken >= groups),
                      Mux(took, taken >= groups - 2, taken >= groups - 1))),
    ]
    with m.If(took ^ done):
        m.d.sync += taken.eq(Mux(took, taken + 1, taken - 1))
    return full | (took & nearly)


def drained_sums(m: Module, machine: Machine, begins: Value, drain_begins: Value, drain_steady: Value) -> Value:
    """Return whether post-processing takes the sums of the command that is issued, a tile's in every cycle.

    ``begins``: a command begins whose sums leave. Both sides begin commands in the same order, so it is the same
    command where both have begun as many.
    """
    # Commands begun here, less those begun there, but for one that began in the cycle before: that is known late.
    ahead = Signal(range(-2, DEPTH // machine.tiles + 2))
    rest = Signal.like(ahead, name="ahead_rest")
    began, steady = Signal(name="began"), Signal(name="steady")
    level, one_behind = Signal(name="level", init=1), Signal(name="one_behind")  # ``ahead`` is 0, -1
    m.d.comb += rest.eq(ahead - drain_begins)
    m.d.sync += [
        began.eq(begins),
        ahead.eq(Mux(began, rest + 1, rest)),
        level.eq(Mux(began, rest == -1, rest == 0)),
        one_behind.eq(Mux(began, rest == -2, rest == -1)),
    ]
    with m.If(drain_begins):
        m.d.sync += steady.eq(drain_steady)
    return steady & Mux(began, one_behind, level)


def without_old_sums(m: Module, info: View, step: KernelStep, run: ArrayRun, pairs: PairStep | None) -> View:
    """Return the slot ``info``, whose sums start from zero also where the accumulators hold none since reset.

    Parameters
    ----------
    m : Module
    info : View
        The slot that is due, of the step, the run and, in an array that takes channels in pairs, their position.
    """
    slot = Signal(info.shape(), name="slot")
    first, second = step.first, Const(0)
    if pairs is not None:
        second = info.second
        first = Mux(run.winograd, Mux(pairs.odd | step.four, pairs.first, pairs.left.first), step.first)
    held = Signal(2 * MOST_TILES, name="held")  # tiles, and above them those of a lane's second output channel
    place = Cat(info.tile, second)
    with m.If(step.go & info.present & ~info.finish):
        m.d.sync += held.bit_select(place, 1).eq(1)
    m.d.comb += [slot.eq(info), slot.clear.eq(info.clear | (first & ~held.bit_select(place, 1)))]
    return slot
