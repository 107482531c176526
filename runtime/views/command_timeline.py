"""The commands of a run as slices in time, unit by unit, and the occupancy of the buffers."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.schedule.accesses import Access, Reader
from tilewright.isa.assembler import EncodedCommand
from tilewright.runtime.execution.job import Job
from tilewright.sim.timing.command_times import CommandTimes

__all__ = ["BUFFERS", "UNITS", "Slice", "levels", "occupancy", "slices"]

UNITS = ("core", "load", "array", "post", "store")
"""Units in the order in which data pass them."""

BUFFERS = {"activations": "activation buffer", "main": "weight memories", "results": "result buffer"}
"""Spaces of `compiler.schedule.accesses`, and what people call them."""

_UNIT_OF = {"host": "core", "load": "load", "mac": "array", "post": "post", "store": "store"}
_GRAINS = 256
"""Parts of a buffer that are told apart."""

Cycles = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slice:
    """Work of a unit from cycle ``begin`` to ``end``: a command, a call of the core, or what it waited for.

    ``number`` is the command's in the order in which the core sends them, or -1.
    """

    unit: str
    name: str
    function: int
    begin: int
    end: int
    number: int = -1


def slices(job: Job, times: CommandTimes) -> Iterator[Slice]:
    """Yield the activity of each unit: its slices in order, none overlapping another.

    Units begin a command while the one before is still under way: its slice begins when that one has ended. Commands
    that only set something have none.
    """
    free = dict.fromkeys(UNITS, 0)
    calls = iter((*times.calls, None))
    call = next(calls)
    for number, (function, command) in enumerate(job.program.commands()):
        if number >= len(times.ended):
            return
        while call is not None and call.before <= number:
            yield Slice("core", call.kernel, call.function, call.begin, call.end)
            call = next(calls)
        unit, name = _UNIT_OF[command.variant.unit], f"{command.instruction.mnemonic}.{command.variant.name}"
        asked, sent, begin, end = (each[number] for each in (times.asked, times.sent, times.begun, times.ended))
        if unit != "core" and sent > asked:
            yield Slice("core", f"waits for the queue of {unit}", function, asked, sent, number)
        begin = max(begin, free[unit])
        if end > begin:
            free[unit] = end
            yield Slice(unit, name, function, begin, end, number)
    while call is not None:
        yield Slice("core", call.kernel, call.function, call.begin, call.end)
        call = next(calls)


@dataclass(slots=True)
class _Buffer:
    """Parts of a buffer: since when each holds something, and until when that was read last."""

    capacity: int
    written: Cycles = field(default_factory=lambda: np.full(_GRAINS, -1, np.int64))
    read: Cycles = field(default_factory=lambda: np.full(_GRAINS, -1, np.int64))
    begins: list[Cycles] = field(default_factory=list)
    ends: list[Cycles] = field(default_factory=list)

    def touch(self, access: Access, begin: int, end: int) -> None:
        """Note an access by a command that runs from ``begin`` to ``end``."""
        parts = slice(access.start * _GRAINS // self.capacity, -(-access.stop * _GRAINS // self.capacity))
        if access.write:
            self._close(parts, begin)
        else:
            self.read[parts] = np.maximum(self.read[parts], end)

    def _close(self, parts: slice, begin: int) -> None:
        """Let what ``parts`` held be gone, if it was read, and let them hold something from ``begin`` on."""
        written, read = self.written[parts], self.read[parts]
        held = (written >= 0) & (read > written)
        self.begins.append(written[held])
        self.ends.append(np.minimum(read[held], begin))
        keep = (written >= 0) & ~held       # written in several steps, before anybody reads
        self.written[parts] = np.where(keep, written, begin)
        self.read[parts] = -1

    def changes(self) -> tuple[Cycles, Cycles]:
        """Return cycles at which the buffer's content changes, and the bytes that it holds from then on."""
        self._close(slice(0, _GRAINS), 1 << 60)
        begins, ends = np.concatenate(self.begins), np.concatenate(self.ends)
        at = np.concatenate([begins, ends])
        step = np.concatenate([np.ones_like(begins), -np.ones_like(ends)])
        moments, where = np.unique(at, return_inverse=True)
        return moments, np.cumsum(np.bincount(where, step, len(moments))).astype(np.int64) * self.capacity // _GRAINS


def occupancy(job: Job, times: CommandTimes) -> dict[str, tuple[Cycles, Cycles]]:
    """Return for each buffer the cycles at which its content changes, and the bytes it holds that will still be read.

    Told apart are 256 parts of each. A part is taken from the command that writes it to the end of the last that reads
    what that one wrote; both are read off the program, as the proof of `compiler.schedule.races` does.
    """
    reader = Reader(job.machine)
    buffers = {space: _Buffer(reader.capacity(space)) for space in BUFFERS}
    for number, command in enumerate(_commands(job)):
        if number >= len(times.ended):
            break
        for access in reader.accesses(command):
            if access.space in buffers:
                buffers[access.space].touch(access, times.begun[number], times.ended[number])
    return {BUFFERS[space]: buffer.changes() for space, buffer in buffers.items()}


def _commands(job: Job) -> Iterator[EncodedCommand]:
    for _, command in job.program.commands():
        yield command


def levels(changes: tuple[Cycles, Cycles], cycles: int, steps: int) -> list[int]:
    """Return the greatest level in each of ``steps`` equal parts of the run's cycles."""
    moments, held = changes
    found = np.zeros(steps, np.int64)
    if not len(moments):
        return found.tolist()
    parts = np.minimum(moments * steps // max(1, cycles), steps - 1)
    np.maximum.at(found, parts, held)
    before = np.searchsorted(moments, np.arange(steps) * cycles // steps, side="right") - 1
    return np.maximum(found, np.where(before >= 0, held[np.maximum(before, 0)], 0)).tolist()
