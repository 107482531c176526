"""Where in its loops over the kernel the command is whose slots are issued."""

from amaranth import Cat, Module, Mux, Signal, Value

from tilewright.isa.machine import TILE_BYTES
from tilewright.rtl.array.sequencer.kernel_step import KernelStep
from tilewright.rtl.array.sequencer.plane_turns import PlaneTurns
from tilewright.rtl.array.sequencer.run_commands import ArrayRun, MacSettings
from tilewright.rtl.array.sequencer.tile_walker import LoopCounter

__all__ = ["KernelLoops"]


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
        base = Signal(20)
        by = Signal(20)
        target = Signal(20)
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
