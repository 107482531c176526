"""Post-processing: from the sums of the array to results in the result buffer.

    commands -> walker -> window steps --issue--> sums -> requantise ----> value --+--> max pool -----> result buffer
                                          |                  ^                     |      ^  |            ^      |
                                          |              parameters                +--> residual add -----+      |
                                          +--> address ------> slot --------> read ------------------------------+

What is issued is never held up: the issue alone waits, for sums.  The slot, which says where the value goes, rides
beside it.  A value table takes values before the pool, or sums behind the residual add, and their slots wait for it.
A unit of rows reads the result buffer by itself, and its entries take the place of sums (`row_stage`).
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, StructLayout, View
from amaranth.lib.wiring import Component, In, Out, PureInterface, connect, flipped
from amaranth.utils import exact_log2

from tilewright.isa.counts import COUNTS
from tilewright.isa.extension import stage_of
from tilewright.isa.lacking import lacks
from tilewright.isa.machine import SUM_BYTES, TILE_BYTES, Machine
from tilewright.rtl.arithmetic.requantise import Requantise
from tilewright.rtl.array.mac import MacUnit
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.post.extension_stage import ExtensionStage
from tilewright.rtl.post.mapping_stage import MappingStage, NoMapping
from tilewright.rtl.post.output_walker import OutputSteps, OutputWalker, PoolingWindow, vector_layout
from tilewright.rtl.post.parameter_buffer import ParameterBuffer, groups_since, kept_writes, parameter_group
from tilewright.rtl.post.pooling import MaxPoolUnit, WindowSteps
from tilewright.rtl.post.post_settings import (
    CLAMP,
    INTEGER_CLAMP,
    OFFSET,
    SCALE,
    WORDS,
    assign,
    chosen_clamp,
)
from tilewright.rtl.post.requantise_stage import Arrived, Requantised, requantise_sums
from tilewright.rtl.post.residual_stage import NoResiduals, Residuals, ResidualStage, Results
from tilewright.rtl.post.row_stage import NoRows, RowStage
from tilewright.rtl.post.value_table import ValueTables
from tilewright.rtl.stream.commands import Command, flag, is_command
from tilewright.rtl.stream.queues import FlaggedFIFO, dequeue, enqueue
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["PostUnit"]


class PostUnit(Component):
    """Take the sums of MAC commands through requantisation, residual add, table and max pooling to the result buffer.

    Rate: one vector of ``post_lanes`` values per cycle; with pooling, one vector and window per cycle (2x2 windows
    with stride 2: one vector per cycle); with residual, one vector every ``interval`` cycles: ``post_lanes / 4``
    values per cycle, but at least one. Of whole sums each byte is a value. Rows of an act.rows: see `RowUnit`.
    Latency: the bytes of a vector are handed to the buffer ``latency`` cycles after its sums were requested,
    ``residual_latency`` with residual, and ``TABLE_LATENCY`` more with a table, which changes no rate; words of 16 bits
    ``CURVE_LATENCY`` with their curve.
    Between the last step of a command and the first of the next lie ``COMMAND_GAP`` cycles, and those that
    `OutputWalker` needs for the padding of the pooling window; no cycle is lost between lane groups.

    ``act.run`` starts a cycle after it has come, and once the command before it has made all its requests; its values
    may still be on their way, except between commands with and without residual, or with other tables.
    ``act.rows`` and an ``act.run`` behind it wait until nothing is on its way.
    ``act.set_output`` and ``pool.window`` are taken from then on too; ``act.set_clamp`` and the residual's settings
    wait until nothing is on its way.

    Parameters
    ----------
    machine : Machine
    sums_latency : int
        Cycles from ``sums_request`` to ``sums_response``, at least 2; by default those of `MacUnit`.

    Attributes
    ----------
    commands : stream
        act and pool.window.
    sums_available, sums_request, sums_response, sums_done
        The oldest tile group of one lane group: that there is one; ask for a slice of a tile's sums; the answer; it
        is needed no longer (may come with the last request).
    drain_begins, drain_steady
        In the cycle before this one a run was taken; with it: its walk takes a tile in every cycle, if there are sums.
        Only of machines that take whole tiles.
    parameter_write, table_write : flow
        ``index`` of a bus word of the parameter buffer or the value tables, ``data``.
    residual_write, store_read, store_data
        See `ResultBuffer`.
    out_free_available, out_free_take, res_ready_available, res_ready_take, out_ready_signal, par_free_signal
        Semaphores.
    busy : Out
        A command is being worked on, or values are on their way.
    requantized, residual_added, table_read, result_read_bytes, result_written_bytes : Out
        Increments of the counters in this cycle.
    """

    COMMAND_GAP = OutputWalker.LATENCY + 1 + WindowSteps.LATENCY  # and the queue between them
    VALUE_LATENCY = Requantise.LATENCY + 1  # from the sums to the register of values
    POOL_LATENCY = MaxPoolUnit.LATENCY - MaxPoolUnit.VALUE  # from there to the result buffer
    LATENCY = MacUnit.SUMS_LATENCY + VALUE_LATENCY + POOL_LATENCY  # `latency`, with the sums of `MacUnit`
    RESIDUAL_LATENCY = MacUnit.SUMS_LATENCY + VALUE_LATENCY + ResidualStage.LATENCY  # likewise, less ``interval``
    PLANE_STAGE = 2  # of a slot, in which the place of the lower bytes of words is added to its address
    DRAIN_LATENCY = 1  # from taking a run to ``drain_begins``
    SIGNAL_LATENCY = 1  # from a vector's bytes handed to the buffer to a run's signals
    STORE_READ_LATENCY = ResultBuffer.READ_LATENCY
    TABLE_LATENCY = ValueTables.LATENCY
    CURVE_LATENCY = ValueTables.CURVE_LATENCY

    def __init__(self, machine: Machine, *, sums_latency: int | None = None) -> None:
        sums_latency = MacUnit.sums_latency_of(machine) if sums_latency is None else sums_latency
        if sums_latency < ParameterBuffer.LATENCY:
            raise ValueError(f"PostUnit sums_latency must be at least {ParameterBuffer.LATENCY}, not {sums_latency!r}")
        self.machine = machine
        self.sums_latency = sums_latency
        self.value_latency = sums_latency + self.VALUE_LATENCY
        self.latency = self.value_latency + self.POOL_LATENCY
        self.interval = ResidualStage.interval_of(machine)
        self.residual_latency = self.value_latency + ResidualStage.LATENCY + self.interval
        request = StructLayout({"tile": 2, "pixel": 2, "slice": range(machine.lanes // machine.post_lanes),
                                "winograd": 1})
        self._words = Signal(WORDS, name="words") if machine.wide_words else None
        self._buffer, self._parameters = ResultBuffer(machine), ParameterBuffer(machine)
        self._tables = ValueTables(machine) if machine.value_tables else None
        extension = stage_of(machine)
        self._stage = ExtensionStage(machine, extension) if extension is not None else None
        buffer, parameters = self._buffer.signature.members, self._parameters.signature.members
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "sums_available": In(1),
            "sums_request": Out(flow(request)),
            "sums_response": In(flow(ArrayLayout(32, machine.post_lanes))),
            "sums_done": Out(1),
            **({"drain_begins": Out(1), "drain_steady": Out(1)} if machine.takes_whole_tiles else {}),
            "parameter_write": parameters["write"],
            "table_write": In(flow(StructLayout({"index": 16, "data": 8 * machine.bus_bytes}))),
            "residual_write": buffer["residual_write"],
            "store_read": buffer["store_read"],
            "store_data": buffer["store_data"],
            "out_free_available": In(1),
            "out_free_take": Out(1),
            "res_ready_available": In(1),
            "res_ready_take": Out(1),
            "out_ready_signal": Out(1),
            "par_free_signal": Out(1),
            "busy": Out(1),
            "requantized": Out(range(machine.post_lanes + 1)),
            "residual_added": Out(range(machine.post_lanes + 1)),
            "table_read": Out(range(machine.post_lanes + 1)),
            "result_read_bytes": Out(range(self._buffer.banks + 1)),
            "result_written_bytes": Out(range(self._buffer.banks + 1)),
        })

    def elaborate(self, platform: object) -> Module:
        m, machine = Module(), self.machine
        m.submodules.walker = walker = OutputWalker(machine)
        m.submodules.windows = windows = WindowSteps(machine)
        m.submodules.parameters = parameters = self._parameters
        m.submodules.pool = pool = MaxPoolUnit(machine)
        self._residuals = residuals = Residuals(m, machine) if machine.residual_adder else NoResiduals()
        self._rows = rows = RowStage(m, machine) if machine.normalises_rows else NoRows()
        m.submodules.buffer = buffer = self._buffer
        walking = self._connect_walk(m, walker, windows)
        for name in ("residual_write", "store_read", "store_data"):
            connect(m, flipped(getattr(self, name)), getattr(buffer, name))
        table_write = kept_writes(m, self.parameter_write, self.table_write, parameters.write)

        in_flight = Signal(range(self.residual_latency + 2 + (
            self.CURVE_LATENCY if machine.bends_words else self.TABLE_LATENCY)))
        drained, finished = Signal(init=1, name="drained"), Signal(name="finished")  # drained: nothing is in flight
        clamp = self._commands(m, walker, windows, walking, drained)
        issue = self._issue(m, walker, windows)
        with m.If((issue | rows.comes) ^ finished):
            m.d.sync += [in_flight.eq(Mux(finished, in_flight - 1, in_flight + 1)),
                         drained.eq(finished & (in_flight == 1))]
        kind = self._kind_on_its_way(m, walker)

        arrived = self._slot(m, issue, walker, windows, kind, pool)
        found = requantise_sums(m, machine, self.sums_response, parameters, clamp, arrived,
                                chosen_clamp(clamp, self._words, arrived.wide))
        value = found.value
        m.d.comb += self.requantized.eq(Mux(self.sums_response.valid | rows.comes, arrived.count, 0))
        mapping = self._mapping(m, kind, table_write, found, ~walking & drained)
        mapping.look_up(value, found.comes, residuals.sums)
        m.d.comb += [Cat(pool.value).eq(mapping.values(value)), Cat(pool.old).eq(Cat(buffer.post_data))]
        residuals.add(pool.due, value, Cat(buffer.post_data), mapping)
        results = residuals.results(kind, Results(pool.o.payload.as_value(), pool.o.next, pool.next_writes), mapping)
        read = rows.read(m, buffer, pool.read)
        m.d.comb += [buffer.post_read.valid.eq(read.valid), buffer.post_read.payload.eq(read.payload)]
        self._write(m, kind, pool, results, finished)
        self.observed = {"step_issued": issue | rows.comes, "step_written": finished,
                         "step_ends_command": Mux(rows.comes, rows.ends, windows.o.payload.ends_run)}
        m.d.comb += self.busy.eq(walking | ~drained | self.out_ready_signal | self.par_free_signal)
        return m

    def _connect_walk(self, m: Module, walker: OutputWalker, windows: WindowSteps) -> Signal:
        """Pass the walker's vectors to the window steps; return whether any are yet to be issued."""
        # Two vectors, so that whether there are sums is no part of a path through the walker.
        m.submodules.vectors = vectors = FlaggedFIFO(width=vector_layout(self.machine).size, depth=2)
        walking = Signal()
        walker.share(m, self.commands.payload)
        enqueue(m, walker.o, vectors)
        dequeue(m, vectors, windows.i)
        m.d.comb += [
            windows.axes.eq(walker.axes),
            walking.eq(~walker.idle | vectors.r_rdy | windows.busy | self._rows.busy),
        ]
        return walking

    def _kind_on_its_way(self, m: Module, walker: OutputWalker) -> View:
        """Return what all that is on its way has in common: the walker's, in registers near those who ask.

        A run of another kind begins when nothing is on its way, and its first step comes later than these.
        ``maps_values``: the table takes values, which wait for it before the pool; ``maps_sums``: it takes sums.
        """
        names = ("residual", "table", "table_slot", "table_first", *(("wide",) if self.machine.wide_words else ()))
        kind = Signal(StructLayout({name: len(getattr(walker, name)) for name in names}
                                   | {"maps_values": 1, "maps_sums": 1}))
        sums, own = walker.residual & ~walker.table_first, self._rows.active
        m.d.sync += [
            *(kind[name].eq(Mux(own, 0, getattr(walker, name))) for name in names),
            kind.maps_values.eq(walker.table & ~sums & ~own),
            kind.maps_sums.eq(walker.table & sums & ~own),
        ]
        return kind

    def _mapping(self, m: Module, kind: View, write: PureInterface, found: Requantised,
                 quiet: Value) -> MappingStage | NoMapping:
        """Return the stage of the value tables, which ``write`` fills, with an extension's unit, if there is one."""
        if self._tables is None:
            return NoMapping()
        mapping = MappingStage(m, kind, self._tables, self._rows)
        mapping.write(write)
        if self._stage is not None:
            mapping.extend(self._stage, self.commands, quiet, write, found.value, found.comes)
        if self.machine.bends_words:
            mapping.bend(found.words, found.lower, found.comes)
        return mapping

    def _write(self, m: Module, kind: View, pool: MaxPoolUnit, results: Results, finished: Signal) -> None:
        """Write results to the result buffer, count and signal them."""
        buffer, writes = self._buffer, Signal(name="writes")
        written = Signal(pool.o.payload.shape(), name="written")
        mapped = self._residuals.count(kind, written.slot.count, self.residual_added, self.requantized)
        if self.machine.value_tables:
            m.d.comb += self.table_read.eq(Mux(kind.table, mapped, self._rows.looked_up))
        m.d.comb += [
            written.eq(results.payload),
            buffer.post_write.valid.eq(writes),
            buffer.post_write.payload.address.eq(written.slot.address),
            buffer.post_write.payload.count.eq(written.slot.count),
            buffer.post_write.payload.data.eq(written.data),
            self.result_read_bytes.eq(buffer.bytes_read),
            self.result_written_bytes.eq(buffer.bytes_written),
        ]
        m.d.sync += [finished.eq(results.next), writes.eq(results.next_writes)]
        # One cycle after the write was handed over, so that any read is behind it.
        signals = Cat(self.out_ready_signal, self.par_free_signal)
        m.d.sync += signals.eq(Mux(finished, written.slot.signals, 0))

    def _commands(self, m: Module, walker: OutputWalker, windows: WindowSteps, walking: Value,
                  drained: Value) -> Signal:
        """Take commands, keep the configuration, start runs; return the clamp of the requantisation."""
        head = self.commands.payload
        clamps = INTEGER_CLAMP if self.machine.integer_requantise else CLAMP
        clamp, scale, offset = (
            Signal(shape, name=name) for name, shape in (("clamp", clamps), ("scale", SCALE), ("offset", OFFSET)))
        # Counts are 1 after reset: a command before its settings ends soon.
        output = Signal(OutputSteps, init={"width": 1})
        pool = Signal(PoolingWindow, init=dict.fromkeys(COUNTS["pool", "window"], 1))
        m.d.comb += [walker.output.eq(output), walker.pool.eq(pool), windows.output.eq(output)]
        self._residuals.set(scale, {name: offset[name] for name in offset.shape().members})

        settings = (
            ("act", "set_output", output, ~walking),
            ("pool", "window", pool, ~walking),
            ("act", "set_clamp", clamp, ~walking & drained),
            ("pool", "set_words", self._words, ~walking & drained),
            ("act", "set_residual_scale", scale, ~walking & drained),
            ("act", "set_residual_offset", offset, ~walking & drained),
            ("act", "set_rows", self._rows.settings, ~walking & drained),
            ("act", "set_norm", self._rows.norms, ~walking & drained),
        )
        for mnemonic, variant, target, allowed in settings:
            if lacks(self.machine, mnemonic, variant) is not None:
                continue
            with m.If(is_command(head, mnemonic, variant)):
                m.d.comb += self.commands.ready.eq(allowed)
                with m.If(self.commands.valid & allowed):
                    m.d.sync += assign(target, head, mnemonic, variant)

        self._start(m, walker, walking, drained)
        return clamp

    def _start(self, m: Module, walker: OutputWalker, walking: Value, drained: Value) -> None:
        """Start an act.run at the head of the queue, or the unit of rows, once all that it waits for is there."""
        head, run = self.commands.payload, walker.run.payload
        m.d.comb += assign(run, head, "act", "run")
        flags = {name: head.flags[flag("act", "run", name)]
                 for name in ("wait_out_free", "wait_res_ready", "signal_out_ready", "signal_par_free")}
        m.d.comb += run.signals.eq(Cat(flags["signal_out_ready"], flags["signal_par_free"]))
        # What is asked of the head of the queue comes from registers: a run starts a cycle after it has come, at most.
        kind, kind_before = (Cat(*self._kind(each), *wide) for each, wide in zip(
            (run, walker), walker.wide_kinds, strict=True))
        seen, same_kind, waits_out_free, waits_res_ready, start = (
            Signal(name=name) for name in ("seen", "same_kind", "waits_out_free", "waits_res_ready", "start"))
        m.d.sync += [
            seen.eq(self.commands.valid & is_command(head, "act", "run") & ~start),
            same_kind.eq((kind == kind_before) & ~self._rows.active),
            waits_out_free.eq(flags["wait_out_free"]),
            waits_res_ready.eq(flags["wait_res_ready"] if self.machine.residual_adder else 0),
        ]
        available = (self.out_free_available | ~waits_out_free) & (self.res_ready_available | ~waits_res_ready)
        taken = self._rows.start(m, self.commands, start, ~walking & available & drained)
        m.d.comb += [
            start.eq(seen & ~walking & available & (same_kind | drained)),
            walker.run.valid.eq(start),
            self.out_free_take.eq(taken & waits_out_free),
            self.res_ready_take.eq(taken & waits_res_ready),
        ]
        with m.If(taken):
            m.d.comb += self.commands.ready.eq(1)
        if self.machine.takes_whole_tiles:
            m.d.sync += [self.drain_begins.eq(start), self.drain_steady.eq(~self._slow(run, walker))]

    def _slow(self, run: View, walker: OutputWalker) -> Value:
        """Return whether a run takes a tile's sums more slowly than one in a cycle."""
        slow = run.winograd | run.pooled | run.whole | (run.residual if self.interval > 1 else 0)
        return slow | walker.run_wide if self.machine.wide_words else slow

    def _kind(self, run: PureInterface | View) -> list[Value]:
        """Return what runs must have in common to follow one another without a gap."""
        residual = [run.residual] if self.machine.residual_adder else []
        first = [self._first(run)] if self.machine.value_tables and self.machine.residual_adder else []
        return residual + ([run.table, run.table_slot] if self.machine.value_tables else []) + first

    @staticmethod
    def _first(run: PureInterface | View) -> Value:
        """Return whether the values of a run are mapped before their residuals are added."""
        return run.table_first & run.table & run.residual

    def _issue(self, m: Module, walker: OutputWalker, windows: WindowSteps) -> Value:
        """Let steps go, fresh ones when there are sums; return a value that is high when one does."""
        step, request = windows.o.payload, self.sums_request
        issue = windows.o.valid & windows.o.ready
        fresh = issue & step.fresh
        rest = Signal(range(self.interval))  # cycles until the residual adders are free for another vector
        if self.machine.residual_adder:
            with m.If(issue & walker.residual):
                m.d.sync += rest.eq(self.interval - 1)
            with m.Elif(rest != 0):
                m.d.sync += rest.eq(rest - 1)
        m.d.comb += [
            windows.o.ready.eq((~step.fresh | self.sums_available) & (rest == 0)),
            request.valid.eq(fresh),
            request.payload.tile.eq(step.tile),
            request.payload.pixel.eq(step.pixel),
            request.payload.slice.eq(step.slice),
            request.payload.winograd.eq(walker.winograd),
            self.sums_done.eq(fresh & step.ends_tiles),
        ]
        return issue

    def _slot(self, m: Module, issue: Value, walker: OutputWalker, windows: WindowSteps, kind: View,
              pool: MaxPoolUnit) -> Arrived:
        """Send the slot of each step on its way to the pool, behind the table if that maps the values before it.

        Ask for its parameters in time.

        Returns what is known of the sums when they arrive.
        """
        machine, step = self.machine, windows.o.payload
        parameters = self._parameters
        pipe = Pipeline(
            m, issue, prefix="slot_", fresh=step.fresh, count=step.count, y=step.y, x=step.x,
            index=Cat(step.slice, parameter_group(machine, step, walker.by_pixel)),
            vector=step.vector if machine.whole_sums else step.slice,
            write=step.covered, merge=step.covered & ~step.first,
            residual=walker.residual, signals=Mux(step.ends_run, walker.signals, 0),
        )
        if self._stage is not None:
            # Groups count from the run's first parameters, which a run behind this one may have elsewhere.
            group = Signal.like(step.group, name="first_group")
            with m.If(walker.run.valid):
                m.d.sync += group.eq(walker.run.payload.parameter_base[exact_log2(machine.lanes):])
            pipe.join(own=Cat(step.slice, groups_since(machine, group, step, walker.by_pixel)))
        if machine.whole_sums:
            pipe.join(whole=walker.whole, part=step.vector[:exact_log2(SUM_BYTES)])
        if machine.wide_words:
            pipe.join(lower=step.lower)
        arrived = Arrived(wide=kind.wide if machine.wide_words else Const(0))
        for stage in range(self.value_latency - MaxPoolUnit.VALUE + 1):
            if stage == self.sums_latency - ParameterBuffer.LATENCY:
                asks = pipe.valid & pipe.fresh
                self._rows.parameters(m, parameters, asks, pipe.index)
            if stage == self.sums_latency:
                pipe, arrived.rows = self._rows.join(m, pipe, staged=self._stage is not None), self._rows.results
                arrived.count = pipe.count
                arrived.whole = pipe.whole if machine.whole_sums else Const(0)
                arrived.lower = pipe.lower if machine.wide_words else Const(0)
            if stage == self.sums_latency + 1 and machine.whole_sums:
                arrived.part, arrived.takes = pipe.part, pipe.whole
            if stage == 0:
                pipe.step(address=(pipe.y + pipe.x)[:len(step.y)])
            elif stage == 1:
                channel = Cat(Const(0, exact_log2(machine.post_lanes)), pipe.vector)
                pipe.step(address=(pipe.address + channel)[:len(step.y)])
            elif stage == self.PLANE_STAGE and self._words is not None:
                plane = Mux(pipe.lower, Cat(Const(0, exact_log2(TILE_BYTES)), self._words.plane_words), 0)
                pipe.step(address=(pipe.address + plane)[:len(step.y)])
            elif stage < self.value_latency - MaxPoolUnit.VALUE:
                pipe.step()
        self._to_pool(m, pipe, kind, pool)
        return arrived

    def _to_pool(self, m: Module, pipe: Pipeline, kind: View, pool: MaxPoolUnit) -> None:
        """Pass what has come to the end of the way on to the pool, or to those that wait for the table."""
        machine = self.machine
        slot, waits = Signal.like(pool.i.payload, name="slot"), Signal(name="waits")
        has_tables, has_residual = machine.value_tables, machine.residual_adder
        if has_tables:
            m.d.comb += waits.eq(kind.maps_values)
        if machine.max_pooling:
            m.d.comb += slot.read.eq(pipe.merge | pipe.residual if has_residual else pipe.merge)
        elif has_residual:
            m.d.comb += slot.read.eq(pipe.residual)
        m.d.comb += [slot[name].eq(getattr(pipe, name)) for name in slot.shape().members if name != "read"]
        if not has_tables:
            m.d.comb += [pool.i.valid.eq(pipe.valid), pool.i.payload.eq(slot.as_value())]
            return
        if self._stage is not None:
            ahead = Pipeline(m, pipe.valid & pipe.fresh, prefix="stage_", index=pipe.own)
            for _ in range(MaxPoolUnit.VALUE - self._stage.READ_LATENCY):
                ahead.step()
            m.d.comb += [self._stage.read.valid.eq(ahead.valid), self._stage.read.payload.index.eq(ahead.index)]
        late = Pipeline(m, pipe.valid & waits, prefix="waiting_", slot=slot)
        for _ in range(self.TABLE_LATENCY):
            late.step()
        valid, payload = late.valid, late.slot.as_value()
        if machine.bends_words:
            for _ in range(self.CURVE_LATENCY - self.TABLE_LATENCY):
                late.step()
            valid, payload = Mux(kind.wide, late.valid, valid), Mux(kind.wide, late.slot.as_value(), payload)
        m.d.comb += [
            pool.i.valid.eq(Mux(waits, valid, pipe.valid)),
            pool.i.payload.eq(Mux(waits, payload, slot.as_value())),
        ]
