"""Commands on their way to the array: settings, the run command that is pending, and the one that is issued."""

from amaranth import Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import Layout, Struct, View
from amaranth.lib.wiring import PureInterface

from tilewright.isa.counts import COUNTS
from tilewright.isa.encoding import BY_CHANNEL
from tilewright.isa.machine import Machine
from tilewright.rtl.array.sequencer.tile_walker import TileWalker
from tilewright.rtl.stream.commands import Command, flag, is_command, operands, views

__all__ = ["ArrayRun", "MacSettings", "PendingRun", "issued_run"]


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
    """The run command that has been taken and has not begun; the semaphores it waits for are there, or not.

    free --``take``, where the walker is free to list its tiles--> ``valid`` --``begin``--> free
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.valid = Signal(name="pending")
        self.winograd = Signal(name="pending_winograd")
        self.by_channel = Signal(name="pending_by_channel")
        self.four = Signal(name="pending_four")
        self.pool = Signal(name="pending_pool")
        self.flags = Signal(4, name="pending_flags")
        self.run = Signal(operands("conv", "run")[1], name="pending_run", reset_less=True)
        self.has_activations = Signal(name="act_ready_there")
        self.has_weights = Signal(name="wgt_ready_there")

    def take(self, m: Module, commands: PureInterface, settings: MacSettings, walker: TileWalker, begin: Value) -> None:
        """Take settings where none is pending, or a run command, whose tiles ``walker`` lists from then on.

        The settings stay as they are until the run command has begun.
        """
        machine, command = self.machine, commands.payload
        take = commands.valid & ~self.valid
        is_setting = settings.keep(m, command, take)
        tiles, run = views(command, "conv", "run")
        winograd = is_command(command, "conv23") if machine.winograd else Const(0)
        by_channel, takes_four = machine.takes_channel_kernels, machine.takes_four_patches
        reusing = ("run", "run_by_channel") if by_channel else ("run",)
        reuse = is_command(command, "conv23", *reusing) if machine.reuses_columns else Const(0)
        m.d.comb += [
            commands.ready.eq(~self.valid & (is_setting | ~walker.busy)),
            walker.start.eq(take & ~is_setting & ~walker.busy),
            walker.walk.base.eq(tiles.base),
            walker.walk.tiles_x.eq(settings.tiles_x),
            walker.walk.tiles_y.eq(tiles.tiles_y),
            walker.walk.groups.eq(run.groups),
            walker.walk.x_step.eq(settings.x_step),
            walker.walk.y_step.eq(settings.y_step),
            walker.walk.y_half.eq(tiles.y_half),
            walker.walk.winograd.eq(winograd),
            walker.walk.reuse.eq(reuse),
        ]
        with m.If(walker.start):
            m.d.sync += [
                self.valid.eq(1),
                *([self.winograd.eq(winograd)] if machine.winograd else []),
                *([self.by_channel.eq(is_command(command, "conv23", *BY_CHANNEL))] if by_channel else []),
                *([self.four.eq(is_command(command, "conv23", "run_four_patches"))] if takes_four else []),
                self.pool.eq(is_command(command, "pool")),
                self.flags.eq(command.flags),
                self.run.eq(command.rs2),
            ]
        with m.Elif(begin):
            m.d.sync += self.valid.eq(0)

    def look(self, m: Module, act_ready: Value, wgt_ready: Value) -> Value:
        """Look at the semaphores; return whether those it waits for are there."""
        waits_activations, waits_weights = self.waits
        m.d.comb += [
            self.has_activations.eq(~waits_activations | act_ready),
            self.has_weights.eq(~waits_weights | wgt_ready),
        ]
        return self.has_activations & self.has_weights

    @property
    def waits(self) -> tuple[Value, Value]:
        """Whether it waits for activations, for weights."""
        return self.flags[flag("conv", "run", "wait_act_ready")], self.flags[flag("conv", "run", "wait_wgt_ready")]


def issued_run(m: Module, pending: PendingRun, settings: MacSettings, begin: Value) -> ArrayRun:
    """Return the command that is issued, which takes its settings over as it begins."""
    run = Signal(ArrayRun, reset_less=True)
    with m.If(begin):
        m.d.sync += [
            run.kernel_x_step.eq(settings.kernel_x_step),
            run.kernel_y_step.eq(settings.kernel_y_step),
            run.group_step.eq(settings.group_step),
            *_neighbours(pending, settings, run),
            run.pool.eq(pending.pool),
            run.accumulate.eq(pending.run.accumulate),
            run.hold.eq(pending.run.hold),
            run.free_activations.eq(pending.flags[flag("conv", "run", "signal_act_free")]),
            run.free_weights.eq(pending.flags[flag("conv", "run", "signal_wgt_free")]),
        ]
    return run


def _neighbours(pending: PendingRun, settings: MacSettings, run: ArrayRun) -> list[object]:
    """Return the assignments of where the words beside and below a word lie, as far as they can differ."""
    paired = [settings.pair_words] if pending.machine.paired_rows else []
    if not pending.machine.winograd:
        return [run.below.eq(*paired)] if paired else []
    below = settings.y_step >> 4
    return [
        run.right.eq(Mux(pending.winograd, settings.x_step >> 4, 1)),
        run.below.eq(Mux(pending.winograd, below, *paired) if paired else below),
        run.winograd.eq(pending.winograd),
    ]
