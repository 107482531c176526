"""The cycle model: when each unit takes, starts and ends each command.

Four units take commands from queues of their own, wait for semaphores and signal them, as docs/datapath.md says; each
is a process (sim/timing/event_queue.py) in a file of its own, and so is the RISC-V core, here. They share the bus
(sim/timing/bus.py), the sums between array and post-processing (sim/timing/array.py), and the counters
(sim/timing/ledger.py). How much work a command is follows from its operands (sim/timing/command_work.py), how long it
is under way from the components of rtl/ (sim/timing/latencies.py).
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.coded.decoding_times import DecodingTimes, ReadMemory, no_memory
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.sim.timing.command_times import CommandTimes
from tilewright.sim.timing.event_queue import Process
from tilewright.sim.timing.latencies import QUIET_CYCLES
from tilewright.sim.timing.load import LoadTiming
from tilewright.sim.timing.mac import MacTiming
from tilewright.sim.timing.post import PostTiming
from tilewright.sim.timing.shared import DecodedCommand, Shared
from tilewright.sim.timing.store import StoreTiming
from tilewright.sim.values.executor import ExecutionError

__all__ = ["CycleModel"]


class CycleModel:
    """The coprocessor and its host in time.

    Parameters
    ----------
    machine : Machine
    timing : MemoryTiming
    commands : iterable of (int, EncodedCommand)
        In program order; the first number is the cycles the host takes before it sends the command. Taken one by
        one as the host sends them.
    stored : callable
        Called with address and record for every ``sta.status``.
    read : callable
        Returns what lies in main memory when a command is sent: coded weights, whose bytes decide how long they take.
    """

    def __init__(self, machine: Machine, timing: MemoryTiming, commands: Iterable[tuple[int, EncodedCommand]],
                 stored: Callable[[int, NDArray[np.uint32]], None], read: ReadMemory = no_memory) -> None:
        self._shared = shared = Shared(machine, timing)
        self._stored = stored
        self._decoding = DecodingTimes(machine, read)
        self._cycles: int | None = None
        shared.scheduler.at(0, self._host(iter(commands)))
        self._load, self._mac, self._post = LoadTiming(shared), MacTiming(shared), PostTiming(shared)
        self._store = StoreTiming(shared, self._record)

    @property
    def words_written(self) -> int:
        """Bus words written to memory."""
        return self._store.words_written

    @property
    def times(self) -> CommandTimes:
        """Times of the commands; functions and calls are the host's to fill in."""
        return self._shared.times

    def run(self) -> int:
        """Run to the end; return the cycle in which the last command was taken.

        Raises
        ------
        ExecutionError
            If the host waits for ever: a command is never taken, or a fence never passed.
        """
        self._shared.scheduler.run()
        if self._cycles is None:
            held = ", ".join(unit for unit, queue in self._shared.queues.items() if queue.items)
            raise ExecutionError(f"Program must end, but {self._shared.working} commands never do; commands are left "
                                 f"in the queues of {held or 'no unit'}")
        return self._cycles

    def _host(self, commands: Iterator[tuple[int, EncodedCommand]]) -> Process:
        shared = self._shared
        for gap, command in commands:
            yield shared.now + gap
            unit = command.variant.unit
            number = shared.times.ask(shared.now)
            if unit == "host":
                yield from self._fence()
                shared.times.send(number, shared.now)
                shared.times.end(number, shared.now)
            else:
                shared.working += 1
                yield from shared.queues[unit].put(DecodedCommand.of(command, number, self._decoding.cycles(command)))
                shared.times.send(number, shared.now)
            shared.ledger.counts["commands"] += 1
        self._cycles = shared.now

    def _fence(self) -> Process:
        yield from self._shared.idle()
        yield self._store.settles
        yield self._shared.now + QUIET_CYCLES

    def _record(self, address: int) -> None:
        """Take a snapshot of the counters, those of commands under way in proportion."""
        self._load.count()
        self._post.count()
        self._stored(address, self._shared.ledger.record(self._mac.end))
