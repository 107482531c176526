"""The state of the sequencer: settings, the pending run command, the run in progress, and its loops."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import Layout, Struct, View

from tilewright.isa.counts import COUNTS
from tilewright.isa.machine import LIMITS, PATCHES, TILE_BYTES, Machine
from tilewright.rtl.array.lane import DEPTH
from tilewright.rtl.array.tile_walker import LoopCounter
from tilewright.rtl.stream.commands import Command, is_command, operands

__all__ = ["ArrayRun", "ChannelTurns", "KernelLoops", "KernelStep", "MacSettings", "PairStep", "PendingRun",
           "PlaneTurns", "SecondChannels", "drained_sums", "without_old_sums"]

MOST_TILES = LIMITS["tiles"][1]


class ArrayRun(Struct):
    """A run command while its slots are issued; its tiles and loops are kept elsewhere."""

    kernel_x_step: unsigned(20)
    kernel_y_step: unsigned(20)
    group_step: unsigned(20)
    right: unsigned(16)
    below: unsigned(16)
    winograd: unsigned(1)
    pool: unsigned(1)
    accumulate: unsigned(1)
    hold: unsigned(1)
    free_activations: unsigned(1)
    free_weights: unsigned(1)


class MacSettings:
    """Registers for the operands of the set variants of `conv`, by their names in `isa.encoding`."""

    VARIANTS = ("set_shape", "set_tile_step", "set_kernel_step", "set_group_step")

    def __init__(self, machine: Machine) -> None:
        variants = (*self.VARIANTS, *(("set_planes",) if machine.wide_words else ()))
        self._kept = {variant: tuple(
            self._register(variant, operand, layout)
            for operand, layout in zip(("rs1", "rs2"), operands("conv", variant), strict=True))
            for variant in variants}
        (shape, kernel), (tile_x, tile_y), (kernel_x, kernel_y), (group, _), *planes = self._kept.values()
        self.tiles_x, self.runs = shape.tiles_x, shape.runs
        self.kernel_x, self.kernel_y = kernel.kernel_x, kernel.kernel_y
        self.x_step, self.y_step = tile_x.x_step, tile_y.y_step
        self.kernel_x_step, self.pair_words = kernel_x.kernel_x_step, kernel_x.pair_words
        self.kernel_y_step = kernel_y.kernel_y_step
        self.group_step = group.group_step
        self.plane_step = planes[0][0].plane_step if planes else Const(0)

    @staticmethod
    def _register(variant: str, operand: str, layout: Layout) -> View:
        """Return the register of an operand; counts are 1 after reset, so that a run before its settings ends soon."""
        counts = {name: 1 for name in COUNTS.get(("conv", variant), ()) if name in dict(layout)}
        return Signal(layout, name=f"{variant}_{operand}", init=counts, reset_less=not counts)

    def keep(self, m: Module, command: Command, take: Value) -> Value:
        """Register the operands of ``command`` if it is a set variant and ``take`` is high; return whether it is."""
        is_setting = 0
        for variant, registers in self._kept.items():
            selected = is_command(command, "conv", variant)
            is_setting |= selected
            with m.If(take & selected):
                m.d.sync += [register.eq(operand) for register, operand in zip(
                    registers, (command.rs1, command.rs2), strict=True)]
        return is_setting


class PendingRun:
    """The run command that has been taken and has not begun; the semaphores it waits for are there, or not."""

    def __init__(self) -> None:
        self.valid = Signal(name="pending")
        self.winograd = Signal(name="pending_winograd")
        self.by_channel = Signal(name="pending_by_channel")
        self.four = Signal(name="pending_four")
        self.pool = Signal(name="pending_pool")
        self.flags = Signal(4, name="pending_flags")
        self.run = Signal(operands("conv", "run")[1], name="pending_run", reset_less=True)
        self.has_activations = Signal(name="act_ready_there")
        self.has_weights = Signal(name="wgt_ready_there")


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


class KernelLoops:
    """The loops inside a tile group: kernel rows, in them kernel columns, in them runs of 16 bytes.

    ``last``: the turn is the last of all three. It is a register, since long paths begin with the end of a command.
    """

    def __init__(self) -> None:
        self.runs = LoopCounter("runs", 14)
        self.columns = LoopCounter("kernel_x", 6)
        self.rows = LoopCounter("kernel_y", 6)
        self.last = Signal(name="loops_last", reset_less=True)

    def load(self, m: Module, settings: MacSettings, pairs: Value | None) -> None:
        """Begin all three; with ``pairs`` the runs, which are channels, are an even number."""
        once = (self.runs.load(m, settings.runs, even=pairs), self.columns.load(m, settings.kernel_x),
                self.rows.load(m, settings.kernel_y))
        m.d.sync += self.last.eq(Cat(once).all())

    def offset(self, m: Module, run: ArrayRun, step: KernelStep, begin: Value, planes: PlaneTurns) -> Signal:
        """Return the byte offset of the step from a tile's address: lane group, plane, kernel row, column and run."""
        offset, column, row, lanes = (Signal(20, name=name, reset_less=True) for name in (
            "offset", "column_offset", "row_offset", "lanes_offset"))
        base, by, target = Signal(20), Signal(20), Signal(20)
        with m.If(~self.runs.last):
            m.d.comb += [base.eq(offset), by.eq(TILE_BYTES)]
        with m.Elif(~self.columns.last):
            m.d.comb += [base.eq(column), by.eq(run.kernel_x_step)]
        with m.Elif(~self.rows.last):
            m.d.comb += [base.eq(row), by.eq(run.kernel_y_step)]
        with m.Else():
            ends = Mux(step.ends_lanes, run.group_step, 0)
            m.d.comb += [base.eq(lanes), by.eq(Mux(planes.again, planes.step, ends) if planes.there else ends)]
        m.d.comb += target.eq(base + by)
        with m.If(begin):
            m.d.sync += [offset.eq(0), column.eq(0), row.eq(0), lanes.eq(0)]
        with m.Elif(step.ends):
            m.d.sync += offset.eq(target)
            with m.If(self.runs.last):
                m.d.sync += column.eq(target)
                with m.If(self.columns.last):
                    m.d.sync += row.eq(target)
                    with m.If(planes.in_end(self.rows.last)):
                        m.d.sync += lanes.eq(target)
        return offset

    def step(self, m: Module) -> None:
        """Go on to the next turn; the loops inside one that turns begin again."""
        runs, columns, rows = self.runs, self.columns, self.rows
        m.d.sync += self.last.eq(Mux(
            ~runs.last, runs.next_last & columns.last & rows.last, Mux(
                ~columns.last, runs.once & columns.next_last & rows.last,
                runs.once & columns.once & Mux(rows.last, rows.once, rows.next_last))))
        self.runs.step(m)
        with m.If(self.runs.last):
            self.runs.restart(m)
            self.columns.step(m)
            with m.If(self.columns.last):
                self.columns.restart(m)
                self.rows.step(m)
                with m.If(self.rows.last):
                    self.rows.restart(m)


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
