"""Timing of the array: one command issues its slots while the next is prepared and waits for its semaphores."""

from tilewright.isa.encoding import EXTENSION
from tilewright.isa.extension import unit_of
from tilewright.isa.machine import PATCHES, TILE_BYTES
from tilewright.sim.timing.command_work import MacWork, mac_work
from tilewright.sim.timing.event_queue import Event, Process
from tilewright.sim.timing.latencies import OWN_UNIT_LATENCY, READS_MADE
from tilewright.sim.timing.ledger import IDLE
from tilewright.sim.timing.shared import DecodedCommand, Shared

__all__ = ["MacTiming"]

_EVENTS = ("tile_slots", "activation_read", "weight_read")


class MacTiming:
    """Processes of the array (rtl/array/sequencer, rtl/array/mac.py)."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._pending = IDLE            # what the array does while no command issues
        self._end: Event | None = None  # of the command that issues, or has issued last
        shared.scheduler.at(0, self._commands())

    @property
    def end(self) -> int | None:
        """The cycle after the last slot of the command that issues, if that is known."""
        return self._end.time if self._end is not None else None

    def _commands(self) -> Process:
        shared = self.shared
        while True:
            yield from shared.head("mac")
            self._show("mac_setup")
            taken = shared.take("mac")
            if taken.mnemonic == EXTENSION.mnemonic:
                yield from self._own(taken)
                continue
            if taken.sets:
                yield from shared.configure(taken)
                self._show(IDLE)
                continue
            work = self._work(taken)
            # rtl.array.sequencer.sequencer: tiles + 2 cycles from taking a command to its first slot in an idle array.
            listed = shared.now + min(shared.machine.tiles, work.tiles) + 2
            yield shared.now + 1
            self._show("mac_wait_activations")
            yield from shared.wait(taken, "act_ready")
            self._show("mac_wait_weights")
            yield from shared.wait(taken, "wgt_ready")
            self._show("mac_setup")
            earliest = max(shared.now + 1, listed)
            if self._end is not None:
                yield self._end
            yield earliest
            self._issue(taken, work)

    def _own(self, taken: DecodedCommand) -> Process:
        """Pass items through the unit of an extension, once the array is at rest, and before it begins again."""
        shared, operands = self.shared, taken.operands
        unit = unit_of(shared.machine)
        assert unit is not None
        self._show("mac_wait_activations")
        yield from shared.wait(taken, "act_ready")
        self._show("mac_setup")
        if self._end is not None:
            yield self._end
            yield max(shared.now, (self._end.time or 0) + shared.coupling.delay)
        words = operands["items"] * -(-operands["item_bytes"] // TILE_BYTES)
        yield shared.now + words + OWN_UNIT_LATENCY + unit.latency
        shared.ledger.counts["activation_read"] += TILE_BYTES * words
        shared.ledger.counts["activation_written"] += unit.result_bytes * operands["items"]
        self._show(IDLE)
        shared.finished()

    def _work(self, taken: DecodedCommand) -> MacWork:
        cfg, operands = self.shared.config["conv"], taken.operands
        steps = cfg["runs"] * cfg["kernel_x"] * cfg["kernel_y"]
        if cfg.get("plane_step", 0):    # of two planes each has as many turns
            steps = 2 * (steps + steps % 2 * (taken.mnemonic == "conv23" and self.shared.machine.pairs_channels))
        by_channel = {"run_by_channel": 1, "run_four_patches": PATCHES}.get(taken.variant, 0)
        return mac_work(self.shared.machine, taken.mnemonic, cfg["tiles_x"], operands["tiles_y"], operands["groups"],
                        steps, reuse=taken.mnemonic == "conv23" and (
                            taken.variant == "run" or (by_channel == 1 and self.shared.machine.reuses_columns)),
                        by_channel=by_channel)

    def _issue(self, taken: DecodedCommand, work: MacWork) -> None:
        shared = self.shared
        self._pending = IDLE
        shared.times.begin(taken.number, shared.now)
        shared.ledger.begin(work.total, {name: getattr(work, name) for name in _EVENTS})
        if taken.operands["hold"]:
            self._end = shared.coupling.hold(shared.now, work.total)
        else:
            self._end = shared.coupling.issue(shared.now, work.cycles, work.last)
        shared.scheduler.at(shared.now, self._finish(taken, self._end))

    def _finish(self, taken: DecodedCommand, end: Event) -> Process:
        yield end
        shared = self.shared
        shared.ledger.end(self._pending)
        shared.times.end(taken.number, shared.now)
        shared.signal(shared.now - 1 + READS_MADE, taken, "act_free", "wgt_free")
        shared.finished()

    def _show(self, state: str) -> None:
        """Note what the array waits for; it shows only while no command issues."""
        self._pending = state
        if self._end is None or (self._end.time is not None and self._end.time <= self.shared.now):
            self.shared.ledger.enter(state)
