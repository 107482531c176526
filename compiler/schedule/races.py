"""Prove that the units' relative speed does not matter: no wait starves, no access races, no semaphore overflows.

The program is replayed once in its order. Every command has a start and an end, and each of them a clock: per unit
the latest command known to have ended. What is known:

- in a unit, commands start in order and end in order;
- a wait is met by the signal of the same number, so it knows what was known when that command ended; where two units
  signal one semaphore, each signal must be known to come behind all of the other unit before it;
- an act starts after its mac command has started, and ends after that one has ended;
- what comes behind a fence starts when everything before it has ended, acknowledged by memory;
- what the host core computes itself has ended before any later command starts.

Two commands of different units that touch the same bytes, one of them writing, must be ordered: the first is known to
have ended when the second starts. Nothing here is shared with compiler/schedule/synchronisation.py, which puts the
semaphores in.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from tilewright.compiler.schedule.accesses import Intervals, Reader, mesh
from tilewright.errors import InternalError
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.encoding import SEMAPHORE_WIDTH
from tilewright.isa.machine import Machine
from tilewright.isa.program import Call

__all__ = ["UNITS", "Checker", "RaceError", "Signal", "Sizes", "Touch", "check", "join"]

UNITS = ("load", "mac", "post", "store", "memory", "copy", "residual")
"""Units that a clock counts; a store ends twice: in the result buffer, and when memory has acknowledged it or the
activation buffer has it. Residuals reach the result buffer through a queue of their own, which later loads overtake:
only the end of a residual tells of those before it."""

_Clock = tuple[int, ...]
_NOTHING: _Clock = (-1,) * len(UNITS)


class RaceError(InternalError, AssertionError):
    """A program has a result that would depend on timing: a bug of the compiler."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes that bound a program besides its buffers.

    Attributes
    ----------
    queue
        Commands that a unit's queue holds.
    events
        The greatest value of a semaphore.
    """

    queue: int
    events: int = (1 << SEMAPHORE_WIDTH) - 1


@dataclass(slots=True)
class Signal:
    """A pending signal: its command, and the facts that hold once it has been given."""

    index: int
    clock: _Clock


@dataclass(slots=True)
class Touch:
    """An access that later commands must be ordered with; ``unit`` indexes ``UNITS``."""

    start: int
    stop: int
    write: bool
    unit: int
    index: int
    step: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums that an act will take: the clocks of their mac command, and how many of the array's came up to it."""

    start: _Clock
    end: _Clock
    number: int


@dataclass(slots=True)
class Checker:
    """The state of the replay."""

    machine: Machine
    sizes: Sizes
    reader: Reader = field(init=False)
    commands: list[EncodedCommand] = field(default_factory=list)
    started: dict[str, _Clock] = field(default_factory=lambda: dict.fromkeys((*UNITS, "host"), _NOTHING))
    ended: dict[str, _Clock] = field(default_factory=lambda: dict.fromkeys((*UNITS, "host"), _NOTHING))
    signals: dict[str, deque[Signal]] = field(default_factory=dict)
    signallers: dict[str, dict[str, int]] = field(default_factory=dict)
    signalled: dict[str, int] = field(default_factory=dict)
    waits: dict[str, list[int]] = field(default_factory=dict)
    positions: dict[str, list[int]] = field(default_factory=dict)
    touches: dict[str, Intervals[Touch]] = field(default_factory=dict)
    sums: deque[_Sums] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.reader = Reader(self.machine)

    def replay(self, command: EncodedCommand) -> None:
        """Check one command and take it into account."""
        index, unit = len(self.commands), command.variant.unit
        self.commands.append(command)
        if command.variant.name == "fence":
            self._fence(index)
            return
        issued = self.positions.setdefault(unit, [])
        issued.append(index)
        if unit == "mac" and self.sums and len(issued) - self.sums[0].number > self.sizes.queue:
            raise RaceError(f"Command {index}, {command}, may wait for room in the queue of the array for ever: sums "
                            f"that no act has been sent for hold up the {self.sizes.queue} commands there")
        flags = command.flags
        start = self.started[unit]
        for flag in flags:
            if flag.startswith("wait_"):
                start = join(start, self._take(flag.removeprefix("wait_"), index))
        # Of a mac command, what it knew at its start; its own end is not yet known.
        mac_start, mac_end = _NOTHING, _NOTHING
        if (command.instruction.mnemonic, command.variant.name) == ("act", "run"):
            if not self.sums:
                raise RaceError(f"Command {index}, {command}, needs the sums of a mac command before it")
            taken = self.sums.popleft()
            mac_start, mac_end = taken.start, taken.end
        start = join(start, mac_start)
        self._check_accesses(index, unit, command, start)
        end = _with_own(join(join(start, self.ended[unit]), mac_end), unit, index)
        self.started[unit], self.ended[unit] = start, end
        if unit == "store":
            # A wait for memory covers the copies before; a wait for a copy covers no store to memory.
            place = "copy" if command.variant.name in ("linear", "blocked") else "memory"
            before = join(self.ended["memory"], self.ended["copy"]) if place == "memory" else self.ended["copy"]
            self.ended[place] = _with_own(join(end, before), place, index)
        if _is_residual(command):
            self.ended["residual"] = _with_own(join(end, self.ended["residual"]), "residual", index)
        if unit == "mac" and "hold" in command.operands and not command.operands["hold"]:
            self.sums.append(_Sums(start, end, len(self.positions[unit])))
        for flag in flags:
            if flag.startswith("signal_"):
                self._give(flag.removeprefix("signal_"), index, unit)

    def _fence(self, index: int) -> None:
        """Let everything have ended."""
        if self.sums:
            raise RaceError(f"Command {index}, the fence, is never passed: {len(self.sums)} commands of the array have "
                            f"sums that no act has been sent for")
        everything = (index,) * len(UNITS)
        self.started = dict.fromkeys(self.started, everything)
        self.ended = dict.fromkeys(self.ended, everything)

    def replay_call(self, call: Call) -> None:
        """Check what the host core does itself: nothing that it touches may be in use."""
        known = self.ended["host"]
        for operand in call.operands:
            writes = operand is call.output
            start, stop = operand.address, operand.address + operand.span_bytes
            for touch in self.touches.setdefault("memory", Intervals()).overlapping(start, stop):
                if (touch.write or writes) and known[touch.unit] < touch.index:
                    raise RaceError(f"Call of {call}, behind command {len(self.commands) - 1}, and command "
                                    f"{touch.index}, {self.commands[touch.index]}, touch the same bytes of memory in "
                                    f"any order")

    def _take(self, name: str, index: int) -> _Clock:
        waiting = self.signals.setdefault(name, deque())
        if not waiting:
            raise RaceError(f"Command {index}, {self.commands[index]}, waits for {name}, which nothing before it "
                            f"signals")
        self.waits.setdefault(name, []).append(index)
        return waiting.popleft().clock

    def _give(self, name: str, index: int, unit: str) -> None:
        place = {"mem_ready": "memory", "res_ready": "residual"}.get(
            name, "copy" if (name, unit) == ("act_ready", "store") else unit)
        clock = self.ended[place]
        latest = self.signallers.setdefault(name, {})
        for other, earlier in latest.items():
            if other != place and clock[UNITS.index(other)] < earlier:
                raise RaceError(f"Command {index}, {self.commands[index]}, and command {earlier}, "
                                f"{self.commands[earlier]}, signal {name} in any order")
        latest[place] = index
        self.signals.setdefault(name, deque()).append(Signal(index, clock))
        self.signalled[name] = self.signalled.get(name, 0) + 1
        self._check_overflow(name, index, clock)

    def _check_overflow(self, name: str, index: int, clock: _Clock) -> None:
        """Bound the semaphore at this signal: waits that are certainly over are subtracted.

        A wait is over if its command is known to have ended, or if so many commands of its unit have been issued
        since that they cannot all be in the queue.
        """
        given = self.signalled[name]
        if given <= self.sizes.events:
            return
        waits = self.waits.get(name, [])
        unit = next((self.commands[wait].variant.unit for wait in waits), "load")
        issued = self.positions.get(unit, [])
        behind = max(0, len(issued) - self.sizes.queue - 2)
        certain = max(clock[UNITS.index(unit)], issued[behind - 1] if behind else -1)
        if given - sum(1 for wait in waits if wait <= certain) > self.sizes.events:
            raise RaceError(f"Semaphore {name} may pass {self.sizes.events} at command {index}, {self.commands[index]}")

    def _check_accesses(self, index: int, unit: str, command: EncodedCommand, known: _Clock) -> None:
        for access in self.reader.accesses(command):
            capacity = self.reader.capacity(access.space)
            if not 0 <= access.start < access.stop <= capacity:
                raise RaceError(f"Command {index}, {command}, must stay inside the {capacity} bytes of {access.space}, "
                                f"not touch {access.start}..{access.stop}")
            touches = self.touches.setdefault(access.space, Intervals())
            for touch in touches.overlapping(access.start, access.stop):
                if ((touch.write or access.write) and _owner(touch.unit) != unit
                        and known[touch.unit] < touch.index and not mesh(touch, access)):
                    other = self.commands[touch.index]
                    raise RaceError(f"Command {index}, {command}, and command {touch.index}, {other}, touch the same "
                                    f"bytes of {access.space} in any order")
            place = unit
            if unit == "store":
                place = {"memory": "memory", "activations": "copy"}.get(access.space, unit)
            elif _is_residual(command) and access.space == "results":
                place = "residual"
            number = UNITS.index(place)
            # Later commands that are ordered with this one are ordered with what it covers.
            touches.replace(Touch(access.start, access.stop, access.write, number, index, access.step,
                                  access.size),
                            partial(_covered, write=access.write, unit=unit))


def _is_residual(command: EncodedCommand) -> bool:
    return (command.instruction.mnemonic, command.variant.name) == ("lda", "residual")


def _covered(touch: Touch, *, write: bool, unit: str) -> bool:
    """Tell whether a command ordered with a later access of ``unit`` is thereby ordered with ``touch`` inside it."""
    return write or (not touch.write and _owner(touch.unit) == unit)


def _owner(unit: int) -> str:
    """Return the unit that works on what is counted as ``unit``."""
    return {"memory": "store", "copy": "store", "residual": "load"}.get(UNITS[unit], UNITS[unit])


def join(first: _Clock, second: _Clock) -> _Clock:
    """Return the facts that hold in either."""
    if second is _NOTHING:
        return first
    return tuple(map(max, first, second))


def _with_own(clock: _Clock, unit: str, index: int) -> _Clock:
    """Return ``clock`` with the end of ``unit``'s command ``index``."""
    if unit == "host":
        return clock
    place = UNITS.index(unit)
    return (*clock[:place], index, *clock[place + 1:])


def check(commands: Iterable[EncodedCommand | Call], machine: Machine, sizes: Sizes | None = None) -> int:
    """Replay ``commands`` and what the host core computes between them; return the number of commands.

    With ``sizes`` those count, not the machine's.

    Raises
    ------
    RaceError
        If a wait starves, two accesses race, a semaphore may overflow, a buffer is left, or sums that nobody takes
        hold up the host.
    """
    checker = Checker(machine, sizes or Sizes(machine.queue_depth))
    for command in commands:
        if isinstance(command, Call):
            checker.replay_call(command)
        else:
            checker.replay(command)
    if checker.sums:
        raise RaceError(f"Every sum must be taken by an act command; {len(checker.sums)} are left")
    if left := [name for name, waiting in checker.signals.items() if waiting]:
        raise RaceError(f"Every signal must be waited for; of {left[0]} {len(checker.signals[left[0]])} are left")
    return len(checker.commands)
