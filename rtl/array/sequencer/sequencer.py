"""The control of the array: from commands to one tile slot per cycle, in the order of docs/datapath.md."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import enum, stream
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.rtl.array.sequencer.kernel_step import KernelStep
from tilewright.rtl.array.sequencer.kernel_walk import KernelWalk
from tilewright.rtl.array.sequencer.room_for_sums import drained_sums, no_room, without_old_sums
from tilewright.rtl.array.sequencer.run_commands import MacSettings, PendingRun, issued_run
from tilewright.rtl.array.sequencer.slot_issue import activation_bytes, due_slot, has_tile, send, weight_bytes
from tilewright.rtl.array.sequencer.slots import slot_of
from tilewright.rtl.array.sequencer.tile_walker import TileWalker
from tilewright.rtl.array.sequencer.weight_pointer import weight_pointer
from tilewright.rtl.buffers.activation_buffer import ActivationBuffer, read_request
from tilewright.rtl.buffers.weight_buffer import fetch_layout
from tilewright.rtl.stream.commands import Command
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["MacState", "Sequencer"]


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

    A command is in three places, one after the other, each of which holds one::

        taken    `PendingRun`    free --_take, where the walker has listed the tiles of the one before--> pending
                                 pending --begin--> free
                                 `set` commands are kept where none is pending; they are for the next that comes
        listed   `TileWalker`    its tiles, one a cycle, from when it is taken, as far as there is room
        issued   `KernelWalk`    idle --begin--> active --its last slot--> idle
                                 active --its last slot, and begin--> active
        begin: one is pending, its semaphores are there, and the array is idle or issues the last slot of another

    While a command is active each cycle issues a slot, but where no tile group is listed (counted as SETUP), or where
    a group's last step finds no room for its sums (WAIT_POST, `room_for_sums`). A slot takes its place in the loops
    along (`KernelWalk`), and the pointer to its weights (`weight_pointer`), and becomes a request and a fetch
    (`slot_issue`).

    Rate: one slot per cycle. Within a command no cycle is lost while post-processing keeps up, if its tile groups
    have no less slots than a full group has tiles, as all but the last one of a lane group do. The command after it
    is prepared meanwhile: once its first group is listed, and the semaphores are there, it follows without a gap too.
    Into an idle array the first slot of a command is issued ``tiles`` + 2 cycles after the command has been taken.

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
        m, machine = Module(), self.machine
        m.submodules.walker = walker = TileWalker(machine)
        begin = Signal()   # the pending command becomes the one that is issued
        active = Signal()  # there is one
        settings, pending = MacSettings(machine), PendingRun(machine)
        pending.take(m, self.commands, settings, walker, begin)
        ready = pending.look(m, self.act_ready_available, self.wgt_ready_available)
        # In registers, for begin comes late; the next command looks at the semaphores two cycles later at the earliest.
        m.d.sync += [take.eq(begin & waits) for take, waits in zip(
            (self.act_ready_take, self.wgt_ready_take), pending.waits, strict=True)]

        walk = KernelWalk(machine, pending, issued_run(m, pending, settings, begin))
        step = walk.step
        walk.walk(m, walker, settings, active, begin, self._full(m, pending, walk, begin))
        m.d.comb += begin.eq(pending.valid & ready & (~active | step.ends_command))
        with m.If(begin):
            m.d.sync += [active.eq(1), *([step.four.eq(pending.four)] if machine.takes_four_patches else [])]
        with m.Elif(step.ends_command):
            m.d.sync += active.eq(0)
        if walk.turns is not None:
            walk.turns.walk(m, pending, step, begin, walk.pairs)
        offset = walk.offset(m, begin)
        pointer = weight_pointer(m, machine, pending, walk, begin)
        leaves = self._issue(m, walker, walk, offset, pointer)
        m.d.comb += self.busy.eq(active | pending.valid | leaves)
        self._report(m, pending, active, step)
        self.observed = {"array_begins": begin, "array_ends": step.ends_command}
        return m

    def _full(self, m: Module, pending: PendingRun, walk: KernelWalk, begin: Value) -> Value:
        """Return whether there is no room for the sums of another tile group, and they do not leave as they come."""
        full = no_room(m, self.machine, walk.step, walk.run, walk.planes, self.sums_done)
        if not self.machine.takes_whole_tiles:
            return full
        return full & ~drained_sums(m, self.machine, begin & ~pending.run.hold, self.drain_begins, self.drain_steady)

    def _issue(self, m: Module, walker: TileWalker, walk: KernelWalk, offset: Value, pointer: Value) -> Value:
        """Send the slot on its way, with its tile, weights and what the lanes must do; return whether one leaves."""
        machine, run, step, pairs, turns = self.machine, walk.run, walk.step, walk.pairs, walk.turns
        fetches, fresh = step.slot < machine.fetch_slots, step.first & (step.slot == 0)
        slot = due_slot(m, machine, walker, walk)
        if pairs is not None:
            fetches = fetches & (~run.winograd | pairs.odd | pairs.left.due | step.four)
            fresh = pairs.first & pairs.odd & (step.slot == 0)
        pipe = Pipeline(
            m, step.go, slot=without_old_sums(m, slot, step, run, pairs) if machine.erasure else slot,
            tile=walker.tile, offset=offset, pointer=pointer, fetches=fetches, fresh=fresh, pool=run.pool,
            right=run.right, below=run.below,
            **({"part": step.part} if machine.lane_runs > 1 else {}),
            **({"by_channel": turns.on, "turn": turns.turn} if turns is not None else {}),
            **({"four": step.four} if machine.takes_four_patches else {}),
            free_activations=step.ends_command & run.free_activations,
            free_weights=step.ends_command & run.free_weights)
        pipe.step()
        address = Signal(20)
        m.d.comb += address.eq(pipe.tile.address + pipe.offset)
        leaves = pipe.valid
        if machine.winograd:
            pipe.step(
                address=address,
                rotation=Mux(pipe.slot.dot, address[:4], pipe.offset[4:8]),
                diagonal=(pipe.right + pipe.below)[:16],
            )
        else:
            pipe.step(address=address, rotation=address[:4])
        send(m, machine, pipe, self.request, self.fetch)
        m.d.comb += [
            self.tile_slots.eq(pipe.valid & has_tile(machine, pipe)),
            self.activation_read_bytes.eq(Mux(self.tile_slots, activation_bytes(machine, pipe), 0)),
        ]
        with m.If(self.fetch.valid & ~pipe.pool):
            m.d.comb += self.weight_read_bytes.eq(weight_bytes(machine, pipe))
        for _ in range(ActivationBuffer.READ_LATENCY):
            pipe.step()
        m.d.comb += [
            self.act_free_signal.eq(pipe.valid & pipe.free_activations),
            self.wgt_free_signal.eq(pipe.valid & pipe.free_weights),
        ]
        return leaves

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
