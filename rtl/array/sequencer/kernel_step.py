"""A turn of the kernel loops, in which every tile of a group has its slot, and what it leaves to the next."""

from amaranth import Const, Signal, Value, unsigned
from amaranth.lib.data import Struct

from tilewright.isa.machine import Machine

__all__ = ["KernelStep", "PairStep", "SecondChannels"]


class KernelStep:
    """One turn of the kernel loops, in which every tile of the group has its slot.

    ``go``: a slot is issued. ``first``, ``last``: of the tile group; ``last_column``: of the loop over kernel columns.
    ``finishes``: the first that finishes sums of the group, which is the last, but where four patches come at once:
    ``four``. ``blocked``: there is no room for its sums. ``ends``: with this slot ends the step; ``ends_group``,
    ``ends_lanes``, ``ends_command``: also the tile group, the lane group, the command. ``slot`` is the number of the
    slot. ``part`` is that of the run, of the ``lane_runs`` that hold a byte for every lane.
    """

    def __init__(self, machine: Machine) -> None:
        self.part = Signal(range(machine.lane_runs), name="step_part")
        self.four = Signal(name="step_four") if machine.takes_four_patches else Const(0)
        self.go = Signal(name="step_go")
        self.first = Signal(name="step_first")
        self.last = Signal(name="step_last")
        self.finishes = Signal(name="step_finishes")
        self.last_column = Signal(name="step_last_column")
        self.blocked = Signal(name="step_blocked")
        self.ends = Signal(name="step_ends")
        self.ends_group = Signal(name="step_ends_group")
        self.ends_lanes = Signal(name="step_ends_lanes")
        self.ends_command = Signal(name="step_ends_command")
        self.slot = Signal(2, name="slot")


class SecondChannels(Struct):
    """The rest of a conv23 step on a pair of channels: the same for the lanes' second output channels.

    Attributes
    ----------
    due
        There is something left; the next step does it.
    last_tile, last_slot
        Of the tile group.
    first
        The pair was the tile group's first.
    clear, finish
        As of a slot.
    ends_group, ends_lanes
        The step was the last of a tile group, of a lane group.
    """

    due: unsigned(1)
    last_tile: unsigned(2)
    last_slot: unsigned(2)
    first: unsigned(1)
    clear: unsigned(1)
    finish: unsigned(1)
    ends_group: unsigned(1)
    ends_lanes: unsigned(1)


class PairStep:
    """Position of a step of conv23 among the steps that each bring one channel.

    ``odd``: the second of a pair. ``first``: the pair is the tile group's first. ``flushing``: nothing arrives any
    more; the step does what the command's last has ``left``. ``begins``: the command that is to begin is one of conv23.
    Where four patches come at once, a step's products are of what it brings, of an ``odd`` step for second outputs.
    """

    def __init__(self, begins: Value) -> None:
        self.begins = begins
        self.odd = Signal(name="step_odd")
        self.first = Signal(name="step_first_pair")
        self.flushing = Signal(name="step_flushing")
        self.left = Signal(SecondChannels, name="second_channels")
