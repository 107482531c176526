"""The unit of rows among the stages of post-processing: its commands, and how its results go the way of values."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import PureInterface

from tilewright.isa.machine import Machine
from tilewright.isa.numerics import MANTISSA_BITS
from tilewright.isa.rows.row_norm import GAIN_BITS
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.post.parameter_buffer import ParameterBuffer
from tilewright.rtl.post.row_unit import NORM_SETTINGS, RowUnit
from tilewright.rtl.post.value_table import ValueTables
from tilewright.rtl.stream.commands import flag, is_command, views
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["ROW_SETTINGS", "NoRows", "RowStage"]

ROW_SETTINGS = StructLayout({"mantissa": MANTISSA_BITS, "shift": 6})
"""Operands of ``act.set_rows``."""


class NoRows:
    """The stage of a machine without a unit of rows: post-processing is always that of sums."""

    settings = norms = results = None
    active = busy = comes = ends = looked_up = Const(0)

    def start(self, m: Module, commands: PureInterface, run: Signal, quiet: Value) -> Value:
        """Return whether a command starts: a ``run``."""
        return run

    def read(self, m: Module, buffer: ResultBuffer, other: PureInterface) -> PureInterface:
        """Return the reads of ``other``."""
        return other

    def parameters(self, m: Module, parameters: ParameterBuffer, valid: Value, index: Value) -> None:
        """Read the parameters of vector ``index`` where that is ``valid``."""
        m.d.comb += [parameters.read.valid.eq(valid), parameters.read.payload.eq(index)]

    def look_up(self, m: Module, tables: ValueTables, valid: Value, values: Value) -> None:
        """Look up ``values`` where they are ``valid``."""
        m.d.comb += [tables.i.valid.eq(valid), Cat(tables.i.payload).eq(values)]

    def join(self, m: Module, pipe: Pipeline, *, staged: bool) -> Pipeline:
        """Return the slots of ``pipe``."""
        return pipe


class RowStage:
    """A `RowUnit` that has post-processing for itself from an act.rows on until the next act.run.

    Both begin only when nothing of the other is on its way.

    Attributes
    ----------
    unit : RowUnit
    settings : Signal of ROW_SETTINGS
    norms : Signal of NORM_SETTINGS
    active : Signal
        Post-processing is the unit's.
    busy, comes, ends, looked_up, results
        Of the unit: it works; a step of it is issued, which ends its command; entries looked up; what goes the way of
        sums.
    """

    def __init__(self, m: Module, machine: Machine) -> None:
        self._machine = machine
        m.submodules.rows = self.unit = RowUnit(machine)
        self.settings = Signal(ROW_SETTINGS, name="row_settings")
        self.norms = Signal(NORM_SETTINGS, name="norm_settings")
        self.active = Signal(name="rows_active")
        self._signals = Signal(2, name="row_signals")
        self.busy, self.looked_up, self.results = self.unit.busy, self.unit.looked_up, self.unit.o
        self.comes, self.ends = self.unit.comes
        m.d.comb += [self.unit.mantissa.eq(self.settings.mantissa), self.unit.shift.eq(self.settings.shift),
                     self.unit.norms.eq(self.norms)]

    def start(self, m: Module, commands: PureInterface, run: Signal, quiet: Value) -> Value:
        """Return whether a command starts: a ``run``, which ends the unit's, or, where all is ``quiet``, the unit's."""
        with m.If(run):
            m.d.sync += self.active.eq(0)
        return run | self._take(m, commands, quiet)

    def _take(self, m: Module, commands: PureInterface, allowed: Value) -> Signal:
        """Start on an act.rows at the head of ``commands`` once that is ``allowed``; return whether it is taken."""
        head, unit = commands.payload, self.unit
        seen, start = Signal(name="rows_seen"), Signal(name="rows_start")
        m.d.sync += seen.eq(commands.valid & is_command(head, "act", "rows") & ~start)
        first, second = views(head, "act", "rows")
        m.d.comb += [start.eq(seen & allowed), unit.start.eq(start), unit.base.eq(first.base),
                     unit.length.eq(first.length), unit.rows.eq(second.rows), unit.norm.eq(second.norm)]
        with m.If(start):
            m.d.sync += [
                self.active.eq(1),
                self._signals.eq(Cat(head.flags[flag("act", "rows", f"signal_{name}")]
                                     for name in ("out_ready", "par_free")))]
        return start

    def read(self, m: Module, buffer: ResultBuffer, other: PureInterface) -> PureInterface:
        """Return the reads of the unit and of ``other``, which never come in one cycle; the unit takes its bytes."""
        mine, both = self.unit.read, flow(other.payload.shape()).create(path=("row_reads",))
        m.d.comb += [
            both.valid.eq(mine.valid | other.valid),
            both.payload.eq(Mux(mine.valid, mine.payload.as_value(), other.payload.as_value())),
            self.unit.data.eq(buffer.post_data.as_value()),
        ]
        return both

    def parameters(self, m: Module, parameters: ParameterBuffer, valid: Value, index: Value) -> None:
        """Read gains and shifts for the unit, or the parameters of vector ``index`` where that is ``valid``."""
        ask, lanes = self.unit.ask, range(self._machine.post_lanes)
        m.d.comb += [
            parameters.read.valid.eq(valid | ask.valid),
            parameters.read.payload.eq(Mux(self.active, ask.payload, index)),
            *(self.unit.gains[lane].eq(parameters.data[lane].bias[:GAIN_BITS].as_signed()) for lane in lanes),
            *(self.unit.shifts[lane].eq(parameters.data[lane].mantissa[:GAIN_BITS].as_signed()) for lane in lanes),
        ]

    def look_up(self, m: Module, tables: ValueTables, valid: Value, values: Value) -> None:
        """Look up the unit's entries, or ``values`` where they are ``valid``."""
        index = self.unit.index
        m.d.comb += [
            tables.wide.eq(self.active),
            tables.i.valid.eq(valid | index.valid),
            Cat(tables.i.payload).eq(Mux(self.active, index.payload.as_value(), values)),
            self.unit.entries.eq(tables.words),
        ]

    def join(self, m: Module, pipe: Pipeline, *, staged: bool) -> Pipeline:
        """Return the slots of ``pipe`` and those of the unit's results as one pipeline, whose stage is the first.

        ``staged`` tells that the stage of an extension asks for them, too.
        """
        o, machine = self.unit.o, self._machine
        mine = {"address": o.payload.address, "count": o.payload.count,
                "signals": Mux(o.payload.final, self._signals, 0), **({"write": 1} if machine.max_pooling else {})}
        others = [*(["merge"] if machine.max_pooling else []), *(["residual"] if machine.residual_adder else []),
                  *(["whole", "part"] if machine.whole_sums else []), *(["fresh", "own"] if staged else []),
                  *(["lower"] if machine.wide_words else [])]
        both = {name: Mux(o.valid, mine.get(name, 0), getattr(pipe, name)) for name in (*mine, *others)}
        return Pipeline(m, pipe.valid | o.valid, prefix="joined_", **both)
