"""Timing of post-processing: act commands drain the array's sums into the result buffer, one after the other."""

from functools import partial

from tilewright.sim.timing.command_work import PostWork, Windows, post_work, residual_interval, row_work
from tilewright.sim.timing.event_queue import Event, Process
from tilewright.sim.timing.latencies import (
    COMMAND_GAP,
    CURVE_LATENCY,
    DRAIN_SEEN,
    POST_LATENCY,
    RESIDUAL_LATENCY,
    ROW_TO_SIGNAL,
    SUMS_SAVED,
    TABLE_LATENCY,
)
from tilewright.sim.timing.ledger import Share
from tilewright.sim.timing.shared import DecodedCommand, Shared

__all__ = ["PostTiming"]

_ROWS = (-1,)
"""The kind of an act.rows, unlike that of every act.run."""


class PostTiming:
    """Processes of the post-processing unit (rtl/post/post.py)."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._share: Share | None = None    # events of the command under way
        self._begun = 0                     # when its end became known, and it began or is about to
        self._end = Event()                 # it has made its last request
        self._drained = 0                   # when the last value will be in the result buffer
        shared.scheduler.at(0, self._commands())

    def count(self) -> None:
        """Count the events of the command under way in proportion to its progress."""
        if self._share is not None and self._end.time is not None:
            self.shared.ledger.count(self._share, self.shared.now - self._begun, max(1, self._end.time - self._begun))

    def _commands(self) -> Process:
        shared = self.shared
        before: tuple[int, ...] = (0, 0, 0, 0, 0)
        while True:
            yield from shared.head("post")
            taken = shared.peek("post")
            if taken.sets:
                if taken.variant not in ("window", "set_output"):
                    yield self._drained
                yield from shared.configure(shared.take("post"))
                continue
            yield from shared.wait(taken, "out_free", "res_ready")
            if taken.variant == "rows":
                yield self._drained
                before = _ROWS
                shared.take("post")
                shared.begin("post", taken)
                yield from self._normalise(taken)
                continue
            kind = tuple(taken.operands[name] for name in ("residual", "table", "table_slot", "table_first", "wide"))
            if kind != before:
                yield self._drained
                before = kind
            shared.take("post")
            shared.begin("post", taken)
            yield from self._run(taken)

    def _run(self, taken: DecodedCommand) -> Process:
        shared, cfg, operands = self.shared, self.shared.config["act"], taken.operands
        residual, table = bool(operands["residual"]), bool(operands["table"])
        windows = self._windows() if operands["pooled"] else None
        seek = max(window.padding // window.stride for window in windows) if windows is not None else 0
        work = post_work(shared.machine, operands["rows"], cfg["width"], operands["channels"], windows,
                         winograd=bool(operands["winograd"]), residual=residual,
                         form="wide" if operands["wide"] else "whole" if operands["whole"] else "byte")
        self._share = Share({"requantized": work.requantized, "residual_added": work.requantized * residual,
                             "table_read": work.requantized * table,
                             "result_read": work.read, "result_written": work.written})
        slow = (any(operands[name] for name in ("winograd", "pooled", "whole", "wide"))
                or (residual and residual_interval(shared.machine) > 1))
        steady = shared.now + DRAIN_SEEN if shared.machine.takes_whole_tiles and not slow else None
        self._end = shared.coupling.drain(shared.now + COMMAND_GAP + seek, work.cycles, partial(self._scheduled, work),
                                          steady)
        yield self._end
        shared.ledger.count(self._share, 1, 1)
        self._share = None
        shared.leave_ports(None, None)
        latency = RESIDUAL_LATENCY + residual_interval(shared.machine) if residual else POST_LATENCY
        latency -= SUMS_SAVED[shared.machine.array]
        self._drained = shared.now - 1 + latency + (CURVE_LATENCY if operands["wide"] else TABLE_LATENCY) * table
        shared.signal(self._drained, taken, "out_ready", "par_free")
        shared.end("post", self._drained, taken)

    def _normalise(self, taken: DecodedCommand) -> Process:
        """Compute the softmax or the normalisation of rows, whose time depends on nobody else."""
        shared, operands = self.shared, taken.operands
        work = row_work(shared.machine, operands["rows"], operands["length"], norm=bool(operands["norm"]))
        self._share = Share({"requantized": work.requantized, "table_read": 2 * work.requantized,
                             "result_read": work.read, "result_written": work.written})
        self._begun, self._end = shared.now, Event()
        shared.scheduler.fire(self._end, shared.now + int(work.cycles[0]) + 1)
        shared.leave_ports(work, self._end.time)
        yield self._end
        shared.ledger.count(self._share, 1, 1)
        self._share = None
        shared.leave_ports(None, None)
        self._drained = shared.now - 1 + ROW_TO_SIGNAL
        shared.signal(self._drained, taken, "out_ready", "par_free")
        shared.end("post", self._drained, taken)

    def _windows(self) -> tuple[Windows, Windows]:
        pool = self.shared.config["pool"]
        return (Windows(pool["kernel_y"], pool["stride_y"], pool["top"], pool["rows"]),
                Windows(pool["kernel_x"], pool["stride_x"], pool["left"], pool["width"]))

    def _scheduled(self, work: PostWork) -> None:
        self._begun = self.shared.now
        self.shared.leave_ports(work, self._end.time)
