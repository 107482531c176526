"""A model of the units that searches every state which a program can reach, in any order and at any speed.

A command is issued, starts when its semaphores have events, which it takes, and ends, when it gives its own. Commands
of a unit start in order and end in order. Three ends come later than their command's: a store's in memory, behind which
are all copies before it, a copy's, and a residual's, each in order among its kind; with them come ``mem_ready``, the
copy's ``act_ready`` and ``res_ready``. An act starts after the mac command whose sums it takes, and ends after it. A
fence is passed when all before it has ended everywhere. Events have no names: a semaphore is a number.

The units may be faster than any hardware: a command need not wait for the end of the one before it. Or slower: it does,
and an array whose sums nobody takes goes no further. Races are looked for in the first, deadlocks in the second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilewright.compiler.schedule.accesses import Access, Reader
from tilewright.compiler.schedule.races import Sizes
from tilewright.isa.assembler import EncodedCommand

__all__ = ["MODEL_UNITS", "ModelledCommand", "Violation", "modelled", "violation"]

MODEL_UNITS = ("load", "mac", "post", "store")
_LATE = ("memory", "copy", "residual")
_PIPELINED = 2
"""Commands of a unit that have left its queue and not started."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not happen, and to which command of the program."""

    what: str
    index: int


@dataclass(frozen=True, slots=True)
class ModelledCommand:
    """A command as the units see it.

    Attributes
    ----------
    unit
        Index in ``MODEL_UNITS``; -1 for a fence.
    waits, signals
        Semaphores taken at the start, and given at the end.
    late
        Index in ``_LATE`` of its later end; -1 if it has none.
    late_signals
        Semaphores given then.
    conflicts
        Commands before it, of other units, that touch a byte that it touches, one of them writing; each with whether
        it is the later end that frees the byte.
    sums
        Of an act, the mac command whose sums it takes; of a mac command, the act; -1 if there is none.
    """

    unit: int
    waits: tuple[str, ...]
    signals: tuple[str, ...]
    late: int
    late_signals: tuple[str, ...]
    conflicts: tuple[tuple[int, bool], ...]
    sums: int


class _State(NamedTuple):
    issued: int
    started: tuple[int, ...]
    ended: tuple[int, ...]
    late: tuple[int, ...]
    events: tuple[int, ...]


def modelled(program: Sequence[EncodedCommand], reader: Reader) -> tuple[ModelledCommand, ...]:
    """Return the commands of a program, which sets nothing, as the units see them; ``reader`` has the settings."""
    touched: list[list[tuple[str, frozenset[int], bool]]] = []
    found: list[ModelledCommand] = []
    sums = _sums(program)
    for index, command in enumerate(program):
        touched.append([(each.space, _places(each), each.write) for each in reader.accesses(command)])
        unit, mnemonic, variant = command.variant.unit, command.instruction.mnemonic, command.variant.name
        late = {("store", "memory"): 0, ("store", "status"): 0, ("store", "linear"): 1, ("store", "blocked"): 1,
                ("load", "residual"): 2}.get((unit, variant), -1)
        given = [flag.removeprefix("signal_") for flag in command.flags if flag.startswith("signal_")]
        later = {"mem_ready", "act_ready"} if mnemonic == "sta" else {"res_ready"}
        found.append(ModelledCommand(
            MODEL_UNITS.index(unit) if unit in MODEL_UNITS else -1,
            tuple(flag.removeprefix("wait_") for flag in command.flags if flag.startswith("wait_")),
            tuple(name for name in given if late < 0 or name not in later), late,
            tuple(name for name in given if late >= 0 and name in later),
            tuple(_conflicts(index, program, touched)), sums.get(index, -1)))
    return tuple(found)


def violation(program: Sequence[ModelledCommand], sizes: Sizes) -> tuple[Violation | None, int]:
    """Return what can go wrong with a program, if anything can, and how many states were looked at."""
    looked = 0
    for fast in (True, False):
        model = _Units(program, sizes, fast=fast)
        states, todo = {model.first}, [model.first]
        while todo:
            state = todo.pop()
            moved = False
            for result in model.moves(state):
                moved = True
                if isinstance(result, Violation):
                    return result, looked + len(states)
                if result not in states:
                    states.add(result)
                    todo.append(result)
            if not moved and (state.issued < len(program) or not model.over(state)):
                return Violation("deadlock", state.issued), looked + len(states)
        looked += len(states)
    return None, looked


class _Units:
    """The moves of the units; ``fast`` as the module says."""

    def __init__(self, program: Sequence[ModelledCommand], sizes: Sizes, *, fast: bool) -> None:
        self.program, self.sizes, self.fast = program, sizes, fast
        self.names = sorted({name for each in program for name in (*each.waits, *each.signals, *each.late_signals)})
        self.of_unit = [[i for i, each in enumerate(program) if each.unit == unit] for unit in range(len(MODEL_UNITS))]
        self.of_late = [[i for i, each in enumerate(program) if each.late == late] for late in range(len(_LATE))]
        self.first = _State(0, (0,) * len(MODEL_UNITS), (0,) * len(MODEL_UNITS), (0,) * len(_LATE),
                            (0,) * len(self.names))

    def over(self, state: _State) -> bool:
        """Tell whether all that has been issued has ended everywhere."""
        return all(not self._left(state, index) for index in range(state.issued))

    def moves(self, state: _State) -> Iterator[_State | Violation]:
        """Yield every state that may follow, or what must not happen."""
        if state.issued < len(self.program):
            yield from self._issue(state)
        for unit, commands in enumerate(self.of_unit):
            started, ended = state.started[unit], state.ended[unit]
            if started < len(commands) and commands[started] < state.issued and (self.fast or started == ended):
                yield from self._start(state, commands[started])
            if ended < started:
                yield from self._end(state, commands[ended])
        for late, commands in enumerate(self.of_late):
            if state.late[late] < len(commands):
                yield from self._end_late(state, commands[state.late[late]])

    def _issue(self, state: _State) -> Iterator[_State]:
        unit = self.program[state.issued].unit
        if unit < 0:
            free = self.over(state)
        else:
            waiting = sum(index < state.issued for index in self.of_unit[unit]) - state.started[unit]
            free = waiting < self.sizes.queue + (_PIPELINED if self.fast else 0)
        if free:
            yield state._replace(issued=state.issued + 1)

    def _start(self, state: _State, index: int) -> Iterator[_State | Violation]:
        command = self.program[index]
        events = list(state.events)
        for name in command.waits:
            events[self.names.index(name)] -= 1
        sums = MODEL_UNITS[command.unit] != "post" or self._started(state, command.sums)
        if min(events, default=0) < 0 or not sums:
            return
        for other, late in command.conflicts:
            if self._left(state, other, late=late):
                yield Violation("race", index)
                return
        yield state._replace(started=_one_more(state.started, command.unit), events=tuple(events))

    def _end(self, state: _State, index: int) -> Iterator[_State | Violation]:
        command = self.program[index]
        if command.sums >= 0:
            if MODEL_UNITS[command.unit] == "post" and self._left(state, command.sums, late=False):
                return
            if MODEL_UNITS[command.unit] == "mac" and not self.fast and not self._started(state, command.sums):
                return
        yield from self._given(state._replace(ended=_one_more(state.ended, command.unit)), command.signals, index)

    def _end_late(self, state: _State, index: int) -> Iterator[_State | Violation]:
        command = self.program[index]
        copies = any(self._left(state, other) for other in self.of_late[_LATE.index("copy")] if other < index)
        if self._left(state, index, late=False) or (_LATE[command.late] == "memory" and copies):
            return
        yield from self._given(state._replace(late=_one_more(state.late, command.late)), command.late_signals, index)

    def _given(self, state: _State, names: Sequence[str], index: int) -> Iterator[_State | Violation]:
        events = list(state.events)
        for name in names:
            place = self.names.index(name)
            events[place] += 1
            if events[place] > self.sizes.events:
                yield Violation("overflow", index)
                return
        yield state._replace(events=tuple(events))

    def _started(self, state: _State, index: int) -> bool:
        unit = self.program[index].unit
        return index >= 0 and self.of_unit[unit].index(index) < state.started[unit]

    def _left(self, state: _State, index: int, *, late: bool = True) -> bool:
        """Tell whether a command has yet to end; with ``late`` whether it has its later end before it."""
        command = self.program[index]
        if command.unit < 0:
            return False
        if late and command.late >= 0:
            return self.of_late[command.late].index(index) >= state.late[command.late]
        return self.of_unit[command.unit].index(index) >= state.ended[command.unit]


def _conflicts(index: int, program: Sequence[EncodedCommand],
               touched: Sequence[Sequence[tuple[str, frozenset[int], bool]]]) -> Iterator[tuple[int, bool]]:
    for other in range(index):
        if program[other].variant.unit == program[index].variant.unit:
            continue
        for space, places, write in touched[other]:
            if any(space == mine and (write or writes) and places & touches
                   for mine, touches, writes in touched[index]):
                # What a store reads is free when it ends; what it writes, and a residual, when that has arrived.
                yield other, write


def _sums(program: Sequence[EncodedCommand]) -> dict[int, int]:
    """Return, of each act, the mac command whose sums it takes, and of that the act."""
    macs = [i for i, each in enumerate(program) if each.variant.unit == "mac" and not each.operands.get("hold", 0)]
    acts = [i for i, each in enumerate(program) if (each.instruction.mnemonic, each.variant.name) == ("act", "run")]
    pairs = dict(zip(acts, macs, strict=False))
    return pairs | {mac: act for act, mac in pairs.items()}


def _places(access: Access) -> frozenset[int]:
    if not access.step:
        return frozenset(range(access.start, access.stop))
    return frozenset(place for tooth in range(access.start, access.stop, access.step)
                     for place in range(tooth, min(tooth + access.size, access.stop)))


def _one_more(numbers: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*numbers[:place], numbers[place] + 1, *numbers[place + 1:])
