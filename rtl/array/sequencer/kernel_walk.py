"""The walk of the command that is issued: for each tile group its kernel steps, in each step a slot for each tile.

    for each lane group, in it for each tile group          `TileWalker`; with words of 16 bits twice, `PlaneTurns`
        for each kernel row, kernel column and run          `KernelLoops`: a step
            for each tile of the group                      a slot, unless a group's last step waits for room

With pairs of channels every second step has the products of a pair, and leaves those for the lanes' second output
channels to the step behind it (`PairStep`), which behind the last of a command is one of its own::

    step        even       odd             even            odd             flushing
    brings      channel 0  channel 1       channel 2       channel 3       -
    products of -          0, 1: first     0, 1: second    2, 3: first     2, 3: second
"""

from amaranth import Module, Mux, Value

from tilewright.isa.machine import Machine
from tilewright.rtl.array.sequencer.kernel_loops import KernelLoops
from tilewright.rtl.array.sequencer.kernel_step import KernelStep, PairStep
from tilewright.rtl.array.sequencer.plane_turns import ChannelTurns, PlaneTurns
from tilewright.rtl.array.sequencer.run_commands import ArrayRun, MacSettings, PendingRun
from tilewright.rtl.array.sequencer.tile_walker import TileGroup, TileWalker

__all__ = ["KernelWalk"]


class KernelWalk:
    """Where the command that is issued stands: its registers, and how they go on.

    ``pairs`` and ``turns`` are those of machines that take pairs of channels, and kernels of one channel.
    """

    def __init__(self, machine: Machine, pending: PendingRun, run: ArrayRun) -> None:
        self.machine = machine
        self.run = run
        self.planes = PlaneTurns(machine)
        self.pairs = PairStep(pending.winograd) if machine.pairs_channels else None
        self.turns = ChannelTurns(machine) if machine.takes_channel_kernels else None
        self.loops, self.step = KernelLoops(), KernelStep(machine)

    def walk(self, m: Module, walker: TileWalker, settings: MacSettings, active: Value, begin: Value,
             full: Value) -> None:
        """Go through kernel rows, columns, runs and slots of the tile groups that ``walker`` lists.

        ``full``: there is no room for the sums of another group.
        """
        loops, step, run, pairs = self.loops, self.step, self.run, self.pairs
        group = walker.group
        # Whether the end of this step would end the command is known before whether it ends.
        there, in_last = walker.group_valid, self.planes.in_end(step.last & group.ends_command)
        on_last = step.slot == group.last_slot
        if pairs is not None:
            there = there | pairs.flushing
            on_last, in_last = self._walk_pairs(m, group, begin)
        # Of several slots the first alone may wait, so that the end of a step, which comes late, need not know of it.
        ends = step.go if self.machine.fetch_slots == 1 else active & there
        m.d.comb += [
            step.last.eq(loops.last),
            step.last_column.eq(loops.columns.last),
            step.finishes.eq(Mux(step.four, loops.columns.last & ~pairs.odd, step.last)
                             if self.machine.takes_four_patches and pairs is not None else step.last),
            # The sums leave in a group's last step; the array cannot wait in the middle of it.
            step.blocked.eq(self.planes.in_end(
                walker.group_valid & step.finishes & (step.slot == 0) & full & ~run.hold)),
            step.go.eq(active & there & ~step.blocked),
            step.ends.eq(ends & on_last),
            step.ends_group.eq(step.ends & step.last),
            step.ends_lanes.eq(self.planes.in_end(step.ends_group & group.ends_lanes)),
            step.ends_command.eq(step.ends & in_last),
            walker.slot.eq(step.slot),
            walker.group_done.eq(self.planes.in_end(step.ends_group)),
        ]
        self.planes.walk(m, settings, step, begin)
        with m.If(step.go):
            m.d.sync += step.slot.eq(Mux(step.ends, 0, step.slot + 1))
        with m.If(begin):
            m.d.sync += [step.first.eq(1), step.part.eq(0)]
            loops.load(m, settings, None if pairs is None else pairs.begins)
        with m.Elif(step.ends):
            m.d.sync += [step.first.eq(step.last), step.part.eq(step.part + 1)]
            loops.step(m)

    def offset(self, m: Module, begin: Value) -> Value:
        """Return the byte offset of the step from a tile's address."""
        return self.loops.offset(m, self.run, self.step, begin, self.planes)

    def _walk_pairs(self, m: Module, group: TileGroup, begin: Value) -> tuple[Value, Value]:
        """Keep what a step leaves to the next; return that the slot is its last, and that it is a command's last."""
        step, run, pairs = self.step, self.run, self.pairs
        assert pairs is not None
        left = pairs.left
        # Slots count up, so the longer of the two is at its end where both are, or would be.
        on_last = (left.due & pairs.flushing | (step.slot >= group.last_slot)) & (
            ~left.due | (step.slot >= left.last_slot))
        follows = self.planes.in_end(step.last & group.ends_command)
        with m.If(begin):
            m.d.sync += [pairs.odd.eq(0), pairs.first.eq(1), pairs.flushing.eq(0), left.due.eq(0)]
        with m.Elif(step.ends & run.winograd):
            m.d.sync += [pairs.odd.eq(~pairs.odd), pairs.flushing.eq(follows & ~step.four),
                         left.due.eq(pairs.odd & ~step.four)]
            with m.If(pairs.odd):
                m.d.sync += [
                    pairs.first.eq(step.last),
                    left.last_tile.eq(group.last_tile),
                    left.last_slot.eq(group.last_slot),
                    left.first.eq(pairs.first), left.clear.eq(self.planes.clears(pairs.first, run)),
                    left.finish.eq(self.planes.in_end(step.last & ~run.hold)),
                    left.ends_group.eq(step.last),
                    left.ends_lanes.eq(self.planes.in_end(step.last & group.ends_lanes)),
                    *self.planes.shifts(self.planes.left_shift, pairs.first),
                ]
        return on_last, Mux(run.winograd & ~step.four, pairs.flushing, follows)
