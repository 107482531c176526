"""The control of the array: from commands to one tile slot per cycle, in the order of docs/datapath.md."""

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import enum, stream
from amaranth.lib.data import View
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.encoding import BY_CHANNEL
from tilewright.isa.machine import PATCHES, TILE_BYTES, Machine
from tilewright.rtl.array.lane import DEPTH, slot_of
from tilewright.rtl.array.sequencer_state import (
    ArrayRun,
    ChannelTurns,
    KernelLoops,
    KernelStep,
    MacSettings,
    PairStep,
    PendingRun,
    PlaneTurns,
    drained_sums,
    without_old_sums,
)
from tilewright.rtl.array.tile_walker import TileGroup, TileWalker
from tilewright.rtl.buffers.activation_buffer import ActivationBuffer, read_request
from tilewright.rtl.buffers.weight_buffer import fetch_layout
from tilewright.rtl.stream.commands import Command, flag, is_command, views
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["KERNEL_BYTES", "MacState", "Sequencer"]

KERNEL_BYTES = 9


class MacState(enum.Enum, shape=3):  # type: ignore[call-arg]  # Amaranth's keyword
    """The state of the array in a cycle; each is a counter of `isa.counters`, ``mac_`` and the name."""

    IDLE = 0
    SETUP = 1
    WAIT_ACTIVATIONS = 2
    WAIT_WEIGHTS = 3
    WAIT_POST = 4
    ISSUE = 5


class Sequencer(Component):
    """Issue the tile slots of `conv23`, `conv` and `pool.sum`.

    Rate: one slot per cycle. Within a command no cycle is lost while post-processing keeps up, if its tile groups
    have no less slots than a full group has tiles, as all but the last one of a lane group do. The command after it
    is prepared meanwhile: once its first group is listed, and the semaphores are there, it follows without a gap too.
    Into an idle array the first slot of a command is issued ``tiles`` + 2 cycles after the command has been taken.

    With pairs of channels a step of conv23 brings a channel, and every second one has the products of a pair for the
    lanes' first output channels; those for the second ones follow in the step behind it, of the same tile group, of
    the next, or, behind the last of a command, in a step of its own.

    A tile group's last step begins where there is room for its sums among the ``DEPTH`` of a lane, or where
    post-processing has begun with the sums of this very command and takes those of a tile in every cycle: there will be
    room once they are finished (`MacUnit`). So a layer of one step takes as many cycles as it has slots, however long
    the way of its sums is.

    A run command is taken while the one before it is issued; ``set`` commands for the next but one run wait
    until it has begun, and take one cycle each.

    A slot's request and fetch leave together, ``LATENCY`` cycles after its issue. ``state`` and the counts of
    events follow later, each by a fixed number of cycles.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    commands : ``In(stream.Signature(Command))``
    act_ready_available, act_ready_take, wgt_ready_available, wgt_ready_take
        Semaphores waited for; taken in the cycle behind the one in which the command begins.
    act_free_signal, wgt_free_signal : ``Out(1)``
        All reads of the command's last slot have been made.
    sums_done : ``In(1)``
        Post-processing is done with the oldest tile group: there is room for another.
    drain_begins, drain_steady : ``In(1)``
        Post-processing begins with the sums of the next command; those of a tile leave in every cycle. Only of machines
        that take whole tiles.
    request : ``Out(flow(read_request(machine, slot_of(machine))))``
        To the activation buffer.
    fetch : ``Out(flow(fetch_layout(machine)))``
        To the weight buffers: each step's first slots fetch the weights of lane 0, 1, 2 ... of every cluster.
    state : ``Out(MacState)``
    busy : ``Out(1)``
        A command is under way, or a slot has been issued and has not left.
    tile_slots, activation_read_bytes, weight_read_bytes : ``Out``
        Events of a cycle.
    """

    LATENCY = 2
    MOST_UNDER_WAY = 32
    """Tile groups whose sums are not finished, at most: one a cycle, and fewer cycles than this."""
    DRAIN_LATENCY = 1
    """From ``drain_begins`` to the first step that begins without room."""
    FREE_LATENCY = LATENCY + ActivationBuffer.READ_LATENCY
    """From the issue of a command's last slot to ``act_free_signal`` and ``wgt_free_signal``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "act_ready_available": In(1),
            "act_ready_take": Out(1),
            "wgt_ready_available": In(1),
            "wgt_ready_take": Out(1),
            "act_free_signal": Out(1),
            "wgt_free_signal": Out(1),
            "sums_done": In(1),
            **({"drain_begins": In(1), "drain_steady": In(1)} if machine.takes_whole_tiles else {}),
            "request": Out(flow(read_request(machine, slot_of(machine)))),
            "fetch": Out(flow(fetch_layout(machine))),
            "state": Out(MacState),
            "busy": Out(1),
            "tile_slots": Out(1),
            "activation_read_bytes": Out(7 if machine.takes_four_patches else 5),
            "weight_read_bytes": Out(range(TILE_BYTES * machine.clusters * machine.lanes_per_fetch + 1)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.walker = walker = TileWalker(self.machine)
        begin = Signal()   # the pending command becomes the one that is issued
        active = Signal()  # there is one
        pending, settings = self._take_commands(m, walker, begin)
        ready = self._wait(m, pending, begin)
        run = self._run(m, pending, settings, begin)
        self._planes = PlaneTurns(self.machine)
        pairs = PairStep(pending.winograd) if self.machine.pairs_channels else None
        drained: Value = Const(0)
        if self.machine.takes_whole_tiles:
            drained = drained_sums(m, self.machine, begin & ~pending.run.hold, self.drain_begins, self.drain_steady)
        loops, step = self._walk(m, walker, run, settings, active, begin, pairs, drained)
        m.d.comb += begin.eq(pending.valid & ready & (~active | step.ends_command))
        with m.If(begin):
            m.d.sync += [active.eq(1), *([step.four.eq(pending.four)] if self.machine.takes_four_patches else [])]
        with m.Elif(step.ends_command):
            m.d.sync += active.eq(0)
        turns = ChannelTurns(self.machine) if self.machine.takes_channel_kernels else None
        if turns is not None:
            turns.walk(m, pending, step, begin, pairs)
        offset = loops.offset(m, run, step, begin, self._planes)
        pointer = self._pointer(m, pending, run, step, begin, pairs, turns)
        leaves = self._issue(m, walker, run, step, offset, pointer, pairs, turns)
        m.d.comb += self.busy.eq(active | pending.valid | leaves)
        self._report(m, pending, active, step)
        self.observed = {"array_begins": begin, "array_ends": step.ends_command}
        return m

    def _take_commands(self, m: Module, walker: TileWalker, begin: Value) -> tuple[PendingRun, MacSettings]:
        """Take settings, and one run command ahead of the one that is issued; return that, and the settings.

        The settings stay as they are until the run command has begun.
        """
        command = self.commands.payload
        settings, pending = MacSettings(self.machine), PendingRun()
        take = self.commands.valid & ~pending.valid
        is_setting = settings.keep(m, command, take)
        tiles, run = views(command, "conv", "run")
        winograd = is_command(command, "conv23") if self.machine.winograd else Const(0)
        by_channel, takes_four = self.machine.takes_channel_kernels, self.machine.takes_four_patches
        reusing = ("run", "run_by_channel") if by_channel else ("run",)
        reuse = is_command(command, "conv23", *reusing) if self.machine.reuses_columns else Const(0)
        m.d.comb += [
            self.commands.ready.eq(~pending.valid & (is_setting | ~walker.busy)),
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
                pending.valid.eq(1),
                *([pending.winograd.eq(winograd)] if self.machine.winograd else []),
                *([pending.by_channel.eq(is_command(command, "conv23", *BY_CHANNEL))] if by_channel else []),
                *([pending.four.eq(is_command(command, "conv23", "run_four_patches"))] if takes_four else []),
                pending.pool.eq(is_command(command, "pool")),
                pending.flags.eq(command.flags),
                pending.run.eq(command.rs2),
            ]
        with m.Elif(begin):
            m.d.sync += pending.valid.eq(0)
        return pending, settings

    def _wait(self, m: Module, pending: PendingRun, begin: Value) -> Value:
        """Take the semaphores with the begin of the pending command; return whether they are there."""
        waits_activations = pending.flags[flag("conv", "run", "wait_act_ready")]
        waits_weights = pending.flags[flag("conv", "run", "wait_wgt_ready")]
        m.d.comb += [
            pending.has_activations.eq(~waits_activations | self.act_ready_available),
            pending.has_weights.eq(~waits_weights | self.wgt_ready_available),
        ]
        # In registers, for begin comes late; the next command looks at the semaphores two cycles later at the earliest.
        m.d.sync += [
            self.act_ready_take.eq(begin & waits_activations),
            self.wgt_ready_take.eq(begin & waits_weights),
        ]
        return pending.has_activations & pending.has_weights

    def _run(self, m: Module, pending: PendingRun, settings: MacSettings, begin: Value) -> ArrayRun:
        """Return the command that is issued, which holds its settings."""
        run = Signal(ArrayRun, reset_less=True)
        with m.If(begin):
            m.d.sync += [
                run.kernel_x_step.eq(settings.kernel_x_step),
                run.kernel_y_step.eq(settings.kernel_y_step),
                run.group_step.eq(settings.group_step),
                *self._neighbours(pending, settings, run),
                run.pool.eq(pending.pool),
                run.accumulate.eq(pending.run.accumulate),
                run.hold.eq(pending.run.hold),
                run.free_activations.eq(pending.flags[flag("conv", "run", "signal_act_free")]),
                run.free_weights.eq(pending.flags[flag("conv", "run", "signal_wgt_free")]),
            ]
        return run

    def _neighbours(self, pending: PendingRun, settings: MacSettings, run: ArrayRun) -> list[object]:
        """Return the assignments of where the words beside and below a word lie, as far as they can differ."""
        paired = [settings.pair_words] if self.machine.paired_rows else []
        if not self.machine.winograd:
            return [run.below.eq(*paired)] if paired else []
        below = settings.y_step >> 4
        return [
            run.right.eq(Mux(pending.winograd, settings.x_step >> 4, 1)),
            run.below.eq(Mux(pending.winograd, below, *paired) if paired else below),
            run.winograd.eq(pending.winograd),
        ]

    def _walk(self, m: Module, walker: TileWalker, run: ArrayRun, settings: MacSettings, active: Value,
              begin: Value, pairs: PairStep | None, drained: Value) -> tuple[KernelLoops, KernelStep]:
        """Walk kernel rows, kernel columns, runs and slots; return the loops, and where in them the slot is.

        ``drained``: the sums of the command that is issued leave as fast as they come.
        """
        loops, step = KernelLoops(), KernelStep(self.machine)
        group = walker.group
        # Whether the end of this step would end the command is known before whether it ends.
        there, in_last = walker.group_valid, self._planes.in_end(step.last & group.ends_command)
        on_last = step.slot == group.last_slot
        if pairs is not None:
            there = there | pairs.flushing
            on_last, in_last = self._walk_pairs(m, group, run, step, begin, pairs)
        full = self._full(m, step, run) & ~drained
        # Of several slots the first alone may wait, so that the end of a step, which comes late, need not know of it.
        ends = step.go if self.machine.fetch_slots == 1 else active & there
        m.d.comb += [
            step.last.eq(loops.last),
            step.last_column.eq(loops.columns.last),
            step.finishes.eq(Mux(step.four, loops.columns.last & ~pairs.odd, step.last)
                             if self.machine.takes_four_patches and pairs is not None else step.last),
            # The sums leave in a group's last step; the array cannot wait in the middle of it.
            step.blocked.eq(self._planes.in_end(
                walker.group_valid & step.finishes & (step.slot == 0) & full & ~run.hold)),
            step.go.eq(active & there & ~step.blocked),
            step.ends.eq(ends & on_last),
            step.ends_group.eq(step.ends & step.last),
            step.ends_lanes.eq(self._planes.in_end(step.ends_group & group.ends_lanes)),
            step.ends_command.eq(step.ends & in_last),
            walker.slot.eq(step.slot),
            walker.group_done.eq(self._planes.in_end(step.ends_group)),
        ]
        self._planes.walk(m, settings, step, begin)
        with m.If(step.go):
            m.d.sync += step.slot.eq(Mux(step.ends, 0, step.slot + 1))
        with m.If(begin):
            m.d.sync += [step.first.eq(1), step.part.eq(0)]
            loops.load(m, settings, None if pairs is None else pairs.begins)
        with m.Elif(step.ends):
            m.d.sync += [step.first.eq(step.last), step.part.eq(step.part + 1)]
            loops.step(m)
        return loops, step

    def _walk_pairs(self, m: Module, group: TileGroup, run: ArrayRun, step: KernelStep, begin: Value,
                    pairs: PairStep) -> tuple[Value, Value]:
        """Keep what a step leaves to the next; return that the slot is its last, and that it is a command's last."""
        left = pairs.left
        # Slots count up, so the longer of the two is at its end where both are, or would be.
        on_last = (left.due & pairs.flushing | (step.slot >= group.last_slot)) & (
            ~left.due | (step.slot >= left.last_slot))
        follows = self._planes.in_end(step.last & group.ends_command)
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
                    left.first.eq(pairs.first), left.clear.eq(self._planes.clears(pairs.first, run)),
                    left.finish.eq(self._planes.in_end(step.last & ~run.hold)),
                    left.ends_group.eq(step.last),
                    left.ends_lanes.eq(self._planes.in_end(step.last & group.ends_lanes)),
                    *self._planes.shifts(self._planes.left_shift, pairs.first),
                ]
        return on_last, Mux(run.winograd & ~step.four, pairs.flushing, follows)

    def _full(self, m: Module, step: KernelStep, run: ArrayRun) -> Value:
        """Count the tile groups that have, or will have, finished sums; return whether there is no room for one."""
        groups = DEPTH // self.machine.tiles
        # But for one that is taken in the cycle before: that is known late.
        taken = Signal(range(groups + (self.MOST_UNDER_WAY if self.machine.takes_whole_tiles else 0) + 1))
        took, done = Signal(name="took"), self.sums_done
        full = Signal(name="full")                                      # ``taken`` are as many as there may be
        nearly = Signal(name="nearly_full", init=int(groups == 1))      # or one less
        m.d.sync += [
            took.eq(self._planes.in_end(step.go & step.finishes & (step.slot == 0) & ~run.hold)),
            # What comes late only selects.
            full.eq(Mux(done, Mux(took, taken >= groups, taken > groups),
                        Mux(took, taken >= groups - 1, taken >= groups))),
            nearly.eq(Mux(done, Mux(took, taken >= groups - 1, taken >= groups),
                          Mux(took, taken >= groups - 2, taken >= groups - 1))),
        ]
        with m.If(took ^ done):
            m.d.sync += taken.eq(Mux(took, taken + 1, taken - 1))
        return full | (took & nearly)

    def _pointer(self, m: Module, pending: PendingRun, run: ArrayRun, step: KernelStep, begin: Value,
                 pairs: PairStep | None, turns: ChannelTurns | None) -> Signal:
        """Return the pointer to the weights, which begins anew with each tile group of a lane group.

        By channel it does so with each step: each lane has one kernel, or one pair of kernels.
        It counts kernels, or words, or of an array of inner products pairs of words, of kernels or not.
        """
        pointer, lanes, following = Signal(17, reset_less=True), Signal(17, reset_less=True), Signal(17)
        base = pending.run.weight_base
        fetches, ends_group, ends_lanes = step.slot < self.machine.fetch_slots, step.ends_group, step.ends_lanes
        if pairs is not None:
            base = Mux(pending.winograd, base, base >> 1)
            paired = run.winograd & ~step.four
            fetches = fetches & (~paired | pairs.odd | pairs.left.due)
            again = step.ends & ~pairs.odd & pairs.left.due & pairs.left.ends_group
            ends_group = Mux(paired, again, ends_group)
            ends_lanes = Mux(paired, again & pairs.left.ends_lanes, ends_lanes)
        elif self.machine.winograd:
            base = base << pending.winograd
        elif self.machine.inner:
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

    def _issue(self, m: Module, walker: TileWalker, run: ArrayRun, step: KernelStep, offset: Value, pointer: Value,
               pairs: PairStep | None, turns: ChannelTurns | None) -> Value:
        """Send the slot on its way, with its tile, weights and what the lanes must do; return whether one leaves."""
        fetches, fresh = step.slot < self.machine.fetch_slots, step.first & (step.slot == 0)
        info = self._slot(m, walker, run, step, pairs)
        if pairs is not None:
            fetches = fetches & (~run.winograd | pairs.odd | pairs.left.due | step.four)
            fresh = pairs.first & pairs.odd & (step.slot == 0)
        pipe = Pipeline(
            m, step.go, slot=without_old_sums(m, info, step, run, pairs) if self.machine.erasure else info,
            tile=walker.tile, offset=offset, pointer=pointer, fetches=fetches, fresh=fresh, pool=run.pool,
            right=run.right, below=run.below,
            **({"part": step.part} if self.machine.lane_runs > 1 else {}),
            **({"by_channel": turns.on, "turn": turns.turn} if turns is not None else {}),
            **({"four": step.four} if self.machine.takes_four_patches else {}),
            free_activations=step.ends_command & run.free_activations,
            free_weights=step.ends_command & run.free_weights)
        pipe.step()
        tile = pipe.tile
        address = Signal(20)
        m.d.comb += address.eq(tile.address + pipe.offset)
        leaves = pipe.valid
        if self.machine.winograd:
            pipe.step(
                address=address,
                rotation=Mux(pipe.slot.dot, address[:4], pipe.offset[4:8]),
                diagonal=(pipe.right + pipe.below)[:16],
            )
        else:
            pipe.step(address=address, rotation=address[:4])
        self._send(m, pipe)
        for _ in range(ActivationBuffer.READ_LATENCY):
            pipe.step()
        m.d.comb += [
            self.act_free_signal.eq(pipe.valid & pipe.free_activations),
            self.wgt_free_signal.eq(pipe.valid & pipe.free_weights),
        ]
        return leaves

    def _slot(self, m: Module, walker: TileWalker, run: ArrayRun, step: KernelStep, pairs: PairStep | None) -> View:
        """Return the slot that is due."""
        info = Signal(slot_of(self.machine))
        planes = self._planes
        m.d.comb += [
            info.present.eq(step.slot <= walker.group.last_tile),
            info.tile.eq(step.slot), info.load.eq(step.slot == 0),
            info.clear.eq(planes.clears(step.first, run)),
            info.finish.eq(planes.in_end(step.last & ~run.hold)),
            info.complete.eq(planes.in_end(step.ends_group & ~run.hold)),
            *planes.shifts(info, step.first),
            *([info.dot.eq(~run.winograd)] if self.machine.winograd else []),
        ]
        if pairs is not None:
            left = pairs.left
            m.d.comb += info.arrives.eq((step.slot <= walker.group.last_tile) & ~pairs.flushing)
            with m.If(run.winograd):
                m.d.comb += [info.complete.eq(step.four & step.ends_group & ~run.hold),
                             info.clear.eq(planes.clears(pairs.first, run)), *planes.shifts(info, pairs.first)]
                if self.machine.takes_four_patches:
                    with m.If(step.four):
                        m.d.comb += [info.second.eq(pairs.odd), info.finish.eq(step.last_column & ~run.hold)]
                with m.If(~pairs.odd & ~step.four):
                    m.d.comb += [
                        info.second.eq(1), info.present.eq(left.due & (step.slot <= left.last_tile)),
                        info.load.eq((step.slot == 0) & left.due),
                        *(info[name].eq(left[name]) for name in ("clear", "finish")),
                        *([info.shift.eq(planes.left_shift)] if planes.there else []),
                        info.complete.eq(step.ends & left.due & left.finish),
                    ]
        return info

    def _send(self, m: Module, pipe: Pipeline) -> None:
        request, fetch = self.request.payload, self.fetch.payload
        present = pipe.slot.arrives if self.machine.pairs_channels else pipe.slot.present
        has_patches, reuses_columns = self.machine.winograd, self.machine.reuses_columns
        winograd = ~pipe.slot.dot if has_patches else Const(0)
        m.d.comb += [
            self.request.valid.eq(pipe.valid),
            request.present.eq(present),
        ]
        if has_patches:
            m.d.comb += [
                request.linear.eq(pipe.slot.dot),
                request.reuse.eq(pipe.tile.reuse),
                request.half_x.eq(pipe.tile.half_x),
                request.half_y.eq(pipe.tile.half_y),
            ]
        m.d.comb += [request.rotation.eq(pipe.rotation), request.word.eq(pipe.address[4:])]
        if has_patches:
            m.d.comb += request.right.eq(pipe.right)
        if "below" in request.shape().members:
            m.d.comb += request.below.eq(pipe.below)
        if has_patches:
            m.d.comb += request.diagonal.eq(pipe.diagonal)
        m.d.comb += [
            request.meta.eq(pipe.slot),
            self.fetch.valid.eq(pipe.valid & pipe.fetches),
            fetch.pointer.eq(pipe.pointer),
            fetch.lane.eq(pipe.slot.tile),
        ]
        if self.machine.lane_runs > 1:
            m.d.comb += fetch.part.eq(pipe.part)
        if has_patches:
            m.d.comb += [fetch.fresh.eq(pipe.fresh), fetch.winograd.eq(winograd)]
        if self.machine.takes_channel_kernels:
            m.d.comb += [fetch.by_channel.eq(pipe.by_channel), fetch.turn.eq(pipe.turn)]
        four = pipe.four if self.machine.takes_four_patches else Const(0)
        if self.machine.takes_four_patches:
            m.d.comb += [request.four.eq(four), fetch.four.eq(four)]
        if "second" in fetch.shape().members:
            m.d.comb += fetch.second.eq(pipe.slot.second)
        patch_bytes = Mux(pipe.tile.reuse, TILE_BYTES // 2, TILE_BYTES) if reuses_columns else TILE_BYTES
        patch_bytes = Mux(four, PATCHES * TILE_BYTES, patch_bytes) if self.machine.takes_four_patches else patch_bytes
        m.d.comb += [
            fetch.pool.eq(pipe.pool),
            self.tile_slots.eq(pipe.valid & present),
            self.activation_read_bytes.eq(Mux(self.tile_slots, patch_bytes, 0)),
        ]
        run_bytes = TILE_BYTES * self.machine.clusters * self.machine.lanes_per_fetch
        kernel_bytes: Value | int = KERNEL_BYTES * self.machine.clusters * self.machine.lanes_per_fetch
        if self.machine.takes_channel_kernels:
            its_turn = four | ((pipe.turn & (self.machine.fetch_slots - 1)) == pipe.slot.tile)
            kernel_bytes = Mux(pipe.by_channel, Mux(its_turn, KERNEL_BYTES * self.machine.lanes_per_fetch, 0),
                               kernel_bytes)
        with m.If(self.fetch.valid & ~pipe.pool):
            m.d.comb += self.weight_read_bytes.eq(
                Mux(winograd, kernel_bytes, run_bytes) if has_patches else run_bytes)

    def _report(self, m: Module, pending: PendingRun, active: Value, step: KernelStep) -> None:
        """Say what happened in the cycle, one cycle later."""
        with m.If(step.go):
            m.d.sync += self.state.eq(MacState.ISSUE)
        with m.Elif(active):
            m.d.sync += self.state.eq(Mux(step.blocked, MacState.WAIT_POST, MacState.SETUP))
        with m.Elif(pending.valid & ~pending.has_activations):
            m.d.sync += self.state.eq(MacState.WAIT_ACTIVATIONS)
        with m.Elif(pending.valid & ~pending.has_weights):
            m.d.sync += self.state.eq(MacState.WAIT_WEIGHTS)
        with m.Else():
            m.d.sync += self.state.eq(Mux(pending.valid | self.commands.valid, MacState.SETUP, MacState.IDLE))
