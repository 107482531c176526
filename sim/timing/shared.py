"""Parts that the units of the cycle model share: queues, semaphores, counters, the bus, and where commands end."""

from dataclasses import dataclass, field
from functools import partial

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.command_form import form_of
from tilewright.isa.dram.dram import DramTiming
from tilewright.isa.encoding import SEMAPHORES
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.sim.timing.array import Coupling
from tilewright.sim.timing.bus import Bus
from tilewright.sim.timing.command_times import CommandTimes
from tilewright.sim.timing.command_work import PostWork
from tilewright.sim.timing.dram_bus import DramBus
from tilewright.sim.timing.event_queue import CountingSemaphore, Event, EventQueue, Fifo, Process
from tilewright.sim.timing.latencies import MAC_LATENCY, QUEUE_LATENCY, RING_SUMS
from tilewright.sim.timing.ledger import Ledger

__all__ = ["DecodedCommand", "Shared", "only_sets"]

_QUEUED_UNITS = ("load", "mac", "post", "store")

_LEAST_SHARE = 1 / 64
"""Of a port of the result buffer that is left to others: post-processing pauses between commands."""


def only_sets(variant: str) -> bool:
    """Tell whether a variant of that name does no more than set its unit's configuration."""
    return variant.startswith("set_") or variant == "window"


@dataclass(frozen=True, slots=True)
class DecodedCommand:
    """A command by its names; ``number`` is its place in the order in which the core sends commands.

    ``cycles`` are those in which the weights that it loads are decoded.
    """

    mnemonic: str
    variant: str
    operands: dict[str, int]
    flags: tuple[str, ...]
    number: int = -1
    cycles: int = 0

    @classmethod
    def of(cls, command: EncodedCommand, number: int = -1, cycles: int = 0) -> "DecodedCommand":
        """Return ``command`` decoded."""
        variant = command.variant
        form = form_of(variant)
        return cls(command.instruction.mnemonic, variant.name, form.values(command.rs1, command.rs2),
                   form.flags(command.funct7), number, cycles)

    @property
    def sets(self) -> bool:
        """Whether it does no more than set the unit's configuration."""
        return only_sets(self.variant)


@dataclass
class Shared:
    """The coprocessor without its units.

    Attributes
    ----------
    config : dict
        Settings made by the set variants of each mnemonic.
    working : int
        Commands that are queued or under way.
    times : CommandTimes
        Of the commands so far.
    dram : DramBus or None
        Through which words go, if main memory is DRAM.
    response_cycles : int
        From the last written word to memory's response.
    """

    machine: Machine
    timing: MemoryTiming
    scheduler: EventQueue = field(default_factory=EventQueue)
    working: int = 0
    times: CommandTimes = field(default_factory=CommandTimes)

    def __post_init__(self) -> None:
        machine, scheduler = self.machine, self.scheduler
        self.semaphores = {semaphore.name: CountingSemaphore(scheduler) for semaphore in SEMAPHORES}
        self.queues: dict[str, Fifo[DecodedCommand]] = {
            unit: Fifo(scheduler, machine.queue_depth, QUEUE_LATENCY) for unit in _QUEUED_UNITS}
        self.config: dict[str, dict[str, int]] = {
            name: {} for name in ("lda", "ldw", "conv", "act", "pool", "sta", "extension")}
        self.ledger = Ledger(scheduler)
        self.coupling = Coupling(scheduler, RING_SUMS // machine.tiles,
                                 MAC_LATENCY[machine.array] + machine.fetch_slots - 1)
        timing, flow = self.timing, 1 - self.timing.stall_percent / 100
        # DRAM has a rate of its own, and the bus moves a word each way.
        dram = timing.dram if isinstance(timing, DramTiming) else None
        self.bus = Bus(scheduler, 2.0 if dram is not None else timing.bytes_per_cycle / machine.bus_bytes, flow)
        self.dram = None if dram is None else DramBus(scheduler, dram, self.bus, machine.bus_bytes)
        self.response_cycles = timing.latency_cycles if dram is None else dram.response_cycles
        self.copies = Bus(scheduler, 1.0, reads_first=True)   # from result buffer to activation buffer; padding
        self.bus.read_rate_changed = self._limit_copies
        self._writes_per_word = 0.0     # that the load makes to the activation buffer
        self._results_share = 1.0       # of the reads of the result buffer, which copies may make
        self._residual_share = 1.0
        self._loads_residual = False
        self._idle = Event()

    @property
    def now(self) -> int:
        """The cycle the simulation has come to."""
        return self.scheduler.now

    # ---- commands

    def head(self, unit: str) -> Process:
        """Wait for a command of ``unit``; :meth:`peek` and :meth:`take` give it."""
        yield from self.queues[unit].head()

    def peek(self, unit: str) -> DecodedCommand:
        """Return the command at the head of the queue."""
        return self.queues[unit].items[0][1]

    def take(self, unit: str) -> DecodedCommand:
        """Remove it and return it."""
        taken = self.queues[unit].pop()
        self.times.take(taken.number, self.now)
        return taken

    def configure(self, taken: DecodedCommand) -> Process:
        """Carry out a set variant, in one cycle."""
        # conv23, conv and pool.sum share what conv sets.
        self.config[taken.mnemonic].update(taken.operands)
        self.finished()
        yield self.now + 1

    def begin(self, unit: str, taken: DecodedCommand) -> None:
        """Note that ``unit`` has begun to work on a command."""
        self.ledger.work(unit, 1)
        self.times.begin(taken.number, self.now)

    def end(self, unit: str, time: int, taken: DecodedCommand, moved: int = 0) -> None:
        """Note that it will have ended at ``time``, after ``moved`` bytes have crossed the bus for it."""
        self.times.end(taken.number, time, moved)
        self.scheduler.at(time, partial(self._end, unit))

    def _end(self, unit: str) -> None:
        self.ledger.work(unit, -1)
        self.finished()

    def finished(self) -> None:
        """Count a command as done."""
        self.working -= 1
        if not self.working:
            event, self._idle = self._idle, Event()
            self.scheduler.fire(event, self.now)

    def idle(self) -> Process:
        """Wait until no command is queued or under way."""
        while self.working:
            yield self._idle

    # ---- semaphores

    def wait(self, taken: DecodedCommand, *names: str) -> Process:
        """Take those of the semaphores that the command waits for."""
        for name in names:
            if f"wait_{name}" in taken.flags:
                yield self.semaphores[name].take()

    def signal(self, time: int, taken: DecodedCommand, *names: str) -> None:
        """Let those of the semaphores that the command signals be there at ``time``."""
        for name in names:
            if f"signal_{name}" in taken.flags:
                self.scheduler.at(time, self.semaphores[name].signal)

    # ---- ports of the result buffer: post-processing goes first (rtl/buffers/result_buffer.py)

    def leave_ports(self, work: PostWork | None, end: int | None) -> None:
        """Leave the store and the load of residuals what ``work``, spread evenly until ``end``, leaves of the ports."""
        cycles = max(1, end - self.now) if end is not None else 1
        reads, writes = (work.read_cycles / cycles, work.write_cycles / cycles) if work is not None else (0.0, 0.0)
        self.bus.limit(self.bus.write, max(_LEAST_SHARE, 1 - reads))
        self._results_share = max(_LEAST_SHARE, 1 - reads)
        self._limit_copies()
        self._residual_share = max(_LEAST_SHARE, 1 - writes)
        self.load_residual(self._loads_residual)

    def load_residual(self, loads: bool) -> None:
        """Note whether what is being loaded is a residual."""
        self._loads_residual = loads
        self.bus.limit(self.bus.read, self._residual_share if loads else 1.0)

    # ---- port of the activation buffer: the load goes first (rtl/buffers/activation_port.py)

    def load_writes(self, per_word: float) -> None:
        """Note how many writes to the activation buffer the load makes for each word that it reads from now on."""
        self._writes_per_word = per_word
        self._limit_copies()

    def _limit_copies(self) -> None:
        """Leave the copies the cycles of the port in which the load writes nothing."""
        left = 1 - self.bus.read.rate * self._writes_per_word
        self.copies.limit(self.copies.write, min(self._results_share, left if left > _LEAST_SHARE else 0.0))
