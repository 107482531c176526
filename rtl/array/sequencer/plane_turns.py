"""Turns over the same tile group: planes of words of 16 bits, and lanes whose channel a step's products are of."""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib.data import View

from tilewright.isa.machine import PATCHES, Machine
from tilewright.rtl.array.sequencer.kernel_step import KernelStep, PairStep
from tilewright.rtl.array.sequencer.run_commands import ArrayRun, MacSettings, PendingRun

__all__ = ["ChannelTurns", "PlaneTurns"]


class PlaneTurns:
    """Which plane of words of 16 bits a tile group's turn is about: with the second the group's sums are complete.

    ``there``: the machine has such words. ``lower``: the plane is the second. ``again``: it is the first of two, and
    the same tile group follows. ``left_shift``: the product that is left to the next step, of a second output channel,
    is the first of the second plane.
    """

    def __init__(self, machine: Machine) -> None:
        self.there = machine.wide_words
        self.step = Signal(20, name="plane_step", reset_less=True)
        self.two = Signal(name="two_planes")
        self.lower = Signal(name="lower_plane")
        self.left_shift = Signal(name="left_shift")
        self.again = Signal(name="plane_again")

    def walk(self, m: Module, settings: MacSettings, step: KernelStep, begin: Value) -> None:
        """Begin with a run, and go on with each turn over a tile group."""
        if not self.there:
            return
        m.d.comb += self.again.eq(self.two & ~self.lower)
        with m.If(begin):
            m.d.sync += [self.step.eq(settings.plane_step), self.two.eq(settings.plane_step.any()), self.lower.eq(0)]
        with m.Elif(step.ends & step.last):
            m.d.sync += self.lower.eq(self.again)

    def in_end(self, value: Value) -> Value:
        """Return ``value``, which tells of a tile group's end, where that is not followed by its second plane."""
        return value & ~self.again if self.there else value

    def clears(self, first: Value, run: ArrayRun) -> Value:
        """Return whether a tile group's ``first`` step begins its sums: not if held ones, or a plane, are there."""
        clears = first & ~run.accumulate
        return clears & ~self.lower if self.there else clears

    def shifts(self, target: View | Signal, first: Value) -> list[object]:
        """Return the assignment that the sums before a tile group's ``first`` step of its second plane count 256 times.

        ``target`` is a slot, or what is left for one.
        """
        if not self.there:
            return []
        return [(target.shift if isinstance(target, View) else target).eq(first & self.lower)]


class ChannelTurns:
    """Whose turn it is in a run by channel, in which each step has weights for what one fetch serves, and zeros else.

    ``on``: the run is one. ``turn`` counts the array's fetches of a step, through its clusters: that of the lane whose
    channel, or of the lane of two channels whose pair, the step's products are of. Of four patches at once it is that
    of a cluster's first.
    """

    def __init__(self, machine: Machine) -> None:
        self.on = Signal(name="by_channel")
        self.turn = turn_of(machine)
        self.takes_four = machine.takes_four_patches

    def walk(self, m: Module, pending: PendingRun, step: KernelStep, begin: Value, pairs: PairStep | None) -> None:
        """Begin with a run and with each tile group, and go on with each step that had products."""
        ends, ends_group, by = step.ends, step.ends_group, Const(1)
        if pairs is not None:
            ends, ends_group = step.ends & ~pairs.odd & pairs.left.due, pairs.left.ends_group
        if self.takes_four:
            ends = Mux(step.four, step.ends & (1 if pairs is None else pairs.odd), ends)
            ends_group, by = Mux(step.four, step.ends_group, ends_group), Mux(step.four, PATCHES, 1)
        with m.If(begin):
            m.d.sync += [self.on.eq(pending.by_channel), self.turn.eq(0)]
        with m.Elif(ends):
            m.d.sync += self.turn.eq(Mux(ends_group, 0, self.turn + by))


def turn_of(machine: Machine) -> Signal:
    """Return the number of a fetch of weights among those of a step, through all clusters."""
    return Signal(range(max(2, machine.lanes // machine.lanes_per_fetch)), name="turn")
