"""Times of single commands in RTL, from what the simulator has noted of a run (sim/verilator/harness/commands.h)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.encoding import BY_MNEMONIC
from tilewright.isa.program import Call, Program
from tilewright.sim.timing.command_times import CallTime, CommandTimes, Traffic
from tilewright.sim.timing.shared import only_sets

__all__ = ["Note", "measured_times"]

Notes = NDArray[np.uint64]
_Cycles = NDArray[np.int64]

_TRAFFIC_CYCLES = 16
"""Over which bytes on the bus are added up: ``kTrafficCycles`` of the harness."""

_UNITS = ("load", "mac", "post", "store")
"""In the order of `rtl.port.dispatcher.QUEUED_UNITS`."""


class Note(IntEnum):
    """Kinds of notes, as in the harness."""

    OFFERED = 0
    SENT = 1
    TAKEN = 2
    ARRAY_BEGINS = 3
    LOAD_ENDS = 4
    ARRAY_ENDS = 5
    POST_ENDS = 6
    STORE_ENDS = 7
    COPY_ENDS = 8
    CALL_ENDS = 9
    BYTES_READ = 10
    BYTES_WRITTEN = 11


_ENDS = {"load": Note.LOAD_ENDS, "mac": Note.ARRAY_ENDS, "post": Note.POST_ENDS, "store": Note.STORE_ENDS}
_COPIES = ("linear", "blocked")
"""Variants of sta that copy to the activation buffer."""

_FENCE = BY_MNEMONIC["sta"].funct3 << 3 | BY_MNEMONIC["sta"].variant("fence").code


def measured_times(program: Program, notes: Notes) -> CommandTimes:
    """Return when each command of ``program`` was asked for, sent, taken, begun and ended, as ``notes`` say.

    A command ends behind the cycle in which its last byte is written, its last slot is issued, or its last word has
    left for memory; that of a residual then waits for a port of the result buffer. Behind a command come at most the
    cycles that the core takes for its own operators, each of which ends with a fence of RISC-V.

    Raises
    ------
    SimulationError
        If the hardware has not taken the commands of the program, all of them and in order.
    """
    read = _Notes(notes)
    actions = list(program.actions())
    commands = [each for _, each in actions if not isinstance(each, Call)]
    times = CommandTimes(functions=[function for function, each in actions if not isinstance(each, Call)],
                         measured=True, traffic=read.traffic())
    times.asked, times.sent = _sent(commands, read)
    times.taken, times.begun, times.ended = list(times.sent), list(times.asked), list(times.sent)
    for unit in _UNITS:
        numbers = [number for number, each in enumerate(commands) if each.variant.unit == unit]
        _note_unit(unit, commands, numbers, read, times)
    times.calls = list(_calls(actions, times, read.cycles(Note.CALL_ENDS)))
    return times


@dataclass(frozen=True, slots=True)
class _Notes:
    """Notes by kind."""

    words: Notes

    def _of(self, kind: Note) -> Notes:
        return self.words[(self.words >> np.uint64(16) & np.uint64(0xFF)) == kind]

    def cycles(self, kind: Note, value: int | None = None) -> list[int]:
        """Return the cycles of the notes of a kind, and value."""
        found = self._of(kind)
        if value is not None:
            found = found[(found & np.uint64(0xFFFF)) == value]
        return (found >> np.uint64(24)).astype(np.int64).tolist()

    def values(self, kind: Note) -> list[int]:
        """Return their values."""
        return (self._of(kind) & np.uint64(0xFFFF)).astype(np.int64).tolist()

    def traffic(self) -> Traffic:
        """Return the bytes on the bus."""
        read, written = (self._bytes(kind) for kind in (Note.BYTES_READ, Note.BYTES_WRITTEN))
        return Traffic(_TRAFFIC_CYCLES, read, written)

    def _bytes(self, kind: Note) -> _Cycles:
        places = np.array(self.cycles(kind), np.int64) // _TRAFFIC_CYCLES
        return np.bincount(places, self.values(kind)).astype(np.int64)


def _sent(commands: Sequence[EncodedCommand], notes: _Notes) -> tuple[list[int], list[int]]:
    """Return when each command was first offered, and when it was sent."""
    asked, sent = notes.cycles(Note.OFFERED), notes.cycles(Note.SENT)
    codes = notes.values(Note.SENT)
    wanted = [_code(each) for each in commands]
    if len(codes) > len(wanted):
        _join_fences(wanted, codes, asked, sent)
    if codes != wanted or len(asked) != len(sent):
        number = next((number for number, pair in enumerate(zip(codes, wanted, strict=False)) if pair[0] != pair[1]),
                      min(len(codes), len(wanted)))
        raise SimulationError(f"Hardware must take the {len(wanted)} commands of the program in order, and took "
                              f"{len(codes)}, other ones from number {number} on: their times are unknown")
    return asked, sent


def _code(command: EncodedCommand) -> int:
    return command.instruction.funct3 << 3 | command.variant.code


def _join_fences(wanted: list[int], codes: list[int], asked: list[int], sent: list[int]) -> None:
    """Make one of fences that were issued again.

    CV32E40X 0.6.0 may lose the result of one (`isa.emit_c`). Of fences in a row those closest to each other are one.
    """
    place = 0
    while place < len(codes) and len(codes) > len(wanted):
        if codes[place] != _FENCE:
            place += 1
            continue
        rows = [_run_length(each, place) for each in (codes, wanted)]
        for _ in range(rows[0] - rows[1] if rows[1] else 0):
            end = place + _run_length(codes, place)
            again = min(range(place + 1, end), key=lambda each: asked[each] - sent[each - 1])
            del codes[again], asked[again], sent[again - 1]
        place += max(1, rows[1])


def _run_length(codes: Sequence[int], place: int) -> int:
    """Return how many fences in a row begin there."""
    end = place
    while end < len(codes) and codes[end] == _FENCE:
        end += 1
    return end - place


def _note_unit(unit: str, commands: Sequence[EncodedCommand], numbers: list[int], notes: _Notes,
               times: CommandTimes) -> None:
    """Fill in when the commands of a unit were taken, begun and ended."""
    working = [number for number in numbers if not only_sets(commands[number].variant.name)]
    taken = notes.cycles(Note.TAKEN, _UNITS.index(unit))
    for number, cycle in _paired(numbers, taken, f"{unit} to take"):
        times.taken[number] = times.begun[number] = times.ended[number] = cycle
    if unit == "mac":
        for number, cycle in _paired(working, notes.cycles(Note.ARRAY_BEGINS), "the array to begin"):
            times.begun[number] = cycle + 1     # the first in which it can issue a slot
    apart: dict[bool, list[int]] = {False: [], True: []}        # words for memory, and copies
    for number in working:
        apart[unit == "store" and commands[number].variant.name in _COPIES].append(number)
    for some, kind in ((apart[False], _ENDS[unit]), (apart[True], Note.COPY_ENDS)):
        if some:
            for number, cycle in _paired(some, notes.cycles(kind), f"{unit} to end"):
                times.ended[number] = cycle + 1


def _paired(numbers: Sequence[int], cycles: Sequence[int], what: str) -> Iterator[tuple[int, int]]:
    if len(numbers) != len(cycles):
        raise SimulationError(f"Hardware must have noted {len(numbers)} times for {what} a command, not {len(cycles)}")
    return zip(numbers, cycles, strict=True)


def _calls(actions: Sequence[tuple[int, EncodedCommand | Call]], times: CommandTimes,
           ends: list[int]) -> Iterator[CallTime]:
    """Yield the times of what the host core computes itself: those between two commands share the cycles there."""
    number = 0                               # of the next command
    waiting: list[tuple[int, Call]] = []
    moments = np.array(ends, np.int64)
    for function, each in (*actions, (0, None)):
        if isinstance(each, Call):
            waiting.append((function, each))
            continue
        if waiting:
            begin = times.sent[number - 1] + 1 if number else 0
            end = times.asked[number] if each is not None else (ends[-1] + 1 if ends else begin)
            inside = moments[(moments >= begin) & (moments < end)] + 1
            if len(inside) < len(waiting):
                raise SimulationError(f"Hardware must have noted the ends of {len(waiting)} operators of the core "
                                      f"between cycles {begin} and {end}, not {len(inside)}")
            # Others may stand before: of a port without CV-X-IF, whose fences end with one of RISC-V.
            for (owner, call), finish in zip(waiting, inside[len(inside) - len(waiting):].tolist(), strict=True):
                yield CallTime(owner, call.kernel, begin, finish, number)
                begin = finish
            waiting.clear()
        number += 1
