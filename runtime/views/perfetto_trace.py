"""A run as a trace in Chrome's JSON for ui.perfetto.dev: one track per unit, tracks of layers and tiles, counters.

A nanosecond of the trace is a cycle.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.c_lines import command_lines
from tilewright.errors import InputError
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.command_form import form_of
from tilewright.isa.extension import extension_of
from tilewright.runtime.compared_run import ComparedRun
from tilewright.runtime.execution.job import Job
from tilewright.runtime.execution.report import Report
from tilewright.runtime.views.command_timeline import BUFFERS, UNITS, Cycles, Slice, levels, occupancy, slices
from tilewright.sim.timing.command_times import CommandTimes

__all__ = ["perfetto_trace"]

_PROCESS = 1
_LAYERS, _TILES = 1, 2
_TRACKS = {unit: number for number, unit in enumerate(UNITS, 3)}
_POINTS = 4000
"""Points of a counter, at most."""

Event = dict[str, Any]


def perfetto_trace(run: ComparedRun) -> dict[str, Any]:
    """Return the trace of a run as JSON's dicts and lists.

    Raises
    ------
    InputError
        If the times of its commands were not recorded.
    """
    if run.job is None or run.times is None:
        raise InputError("A trace needs the times of all commands, which a run has without --layers and --jobs")
    report = run.report
    whole = _Trace(run.job, run.times, report)
    return {
        "traceEvents": [*whole.heads(), *whole.layers(), *whole.tiles(), *whole.commands(), *whole.counters()],
        "displayTimeUnit": "ns",
        "otherData": {"model": report.model, "machine": report.machine, "engine": report.engine, "host": report.host,
                      "cycles": report.cycles, "cycle": "1 ns", "times": _origin(run.times)},
    }


@dataclass(frozen=True)
class _Trace:
    """The events of a run."""

    job: Job
    times: CommandTimes
    report: Report

    def heads(self) -> Iterator[Event]:
        """Yield the names of the tracks."""
        name = f"{self.report.model} on {self.report.machine}, {_origin(self.times)}; 1 ns is a cycle"
        yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": name}}
        for track, number in {"layers": _LAYERS, "tiles": _TILES, **_TRACKS}.items():
            of_track = {"ph": "M", "pid": _PROCESS, "tid": number}
            yield of_track | {"name": "thread_name", "args": {"name": track}}
            yield of_track | {"name": "thread_sort_index", "args": {"sort_index": number}}

    def layers(self) -> Iterator[Event]:
        """Yield a slice for each layer, from the record before to its own."""
        begin = 0
        for layer in self.report.layers:
            args = {"kind": layer.kind, "algorithm": layer.algorithm, "macs": layer.macs,
                    "bytes read": layer.bytes_read, "bytes written": layer.bytes_written,
                    "energy in microjoules": layer.energy.total_uj}
            yield _slice(_LAYERS, layer.name, begin, begin + layer.cycles, args)
            begin += layer.cycles

    def tiles(self) -> Iterator[Event]:
        """Yield what post-processing drains at a time: from the array's first command for it to the end of its own.

        Neighbours overlap, so that they are pairs of events with a number.
        """
        begin, tile, before = -1, 0, -1
        for number, (function, command) in enumerate(self.job.program.commands()):
            if number >= len(self.times.ended):
                return
            tile, before = (tile if function == before else 0), function
            first, last = self.times.begun[number], self.times.ended[number]
            if last <= first:
                continue
            if command.variant.unit == "mac" and begin < 0:
                begin = first
            if command.variant.unit == "post":
                common = {"cat": "tile", "id": number, "pid": _PROCESS, "tid": _TILES,
                          "name": f"{self._layer_name(function)}, tile {tile}"}
                yield common | {"ph": "b", "ts": _time(first if begin < 0 else begin)}
                yield common | {"ph": "e", "ts": _time(last)}
                begin, tile = -1, tile + 1

    def commands(self) -> Iterator[Event]:
        """Yield the slices of the units: fields of each command, and its line of model.c."""
        program, extension = self.job.program, extension_of(self.job.machine)
        text = program_text(program, self.job.name, extension)
        lines, source = list(command_lines(program, text, extension)), text.splitlines()
        encoded = [command for _, command in program.commands()]
        for each in slices(self.job, self.times):
            args: dict[str, Any] = {"layer": self._layer_name(each.function)}
            if each.number >= 0:
                line = lines[each.number]
                args |= _fields(encoded[each.number]) | {
                    "asked": self.times.asked[each.number], "sent": self.times.sent[each.number],
                    "model.c": f"{line}: {source[line - 1].strip()}"}
            yield _slice(_TRACKS[each.unit], each.name, each.begin, each.end, args)

    def counters(self) -> Iterator[Event]:
        """Yield bytes per cycle on the bus, bytes in the buffers, and commands in the queues."""
        cycles = max(1, self.report.cycles)
        steps = min(_POINTS, cycles)
        for name, rates in (("bus: bytes read per cycle", self._rates("load", cycles, steps)),
                            ("bus: bytes written per cycle", self._rates("store", cycles, steps))):
            yield from _counter(name, rates)
        held = occupancy(self.job, self.times)
        for name in BUFFERS.values():
            filled = levels(held[name], cycles, steps)
            yield from _counter(f"{name}: bytes", ((step * cycles // steps, each) for step, each in enumerate(filled)))
        for unit in ("load", "mac", "post", "store"):
            waiting = levels(self._queue(unit), cycles, steps)
            name = "array" if unit == "mac" else unit
            yield from _counter(f"queue of {name}: commands",
                                ((step * cycles // steps, each) for step, each in enumerate(waiting)))

    def _rates(self, unit: str, cycles: int, steps: int) -> Iterator[tuple[int, float]]:
        """Yield the cycles at which a unit's bytes per cycle on the bus change, and what they become."""
        traffic = self.times.traffic
        if traffic is None:
            moved = [each for each in slices(self.job, self.times)
                     if each.unit == unit and each.number >= 0 and self.times.moved[each.number]]
            for step, rate in enumerate(_predicted_rates(moved, self.times, cycles, steps)):
                yield step * cycles // steps, rate
            return
        each = traffic.read if unit == "load" else traffic.written
        joined = -(-len(each) // steps) or 1        # so that there are no more points than asked for
        sums = np.add.reduceat(each, np.arange(0, len(each), joined)) if len(each) else each
        for place, total in enumerate([*sums.tolist(), 0]):
            yield min(place * joined * traffic.interval, cycles), round(total / (joined * traffic.interval), 3)

    def _queue(self, unit: str) -> tuple[Cycles, Cycles]:
        """Return when the number of commands in a unit's queue changes, and what it becomes."""
        numbers = [number for number, (_, command) in enumerate(self.job.program.commands())
                   if command.variant.unit == unit and number < len(self.times.ended)]
        sent, taken = (np.array([times[number] for number in numbers], np.int64)
                       for times in (self.times.sent, self.times.taken))
        step = np.concatenate([np.ones_like(sent), -np.ones_like(taken)])
        moments, where = np.unique(np.concatenate([sent, taken]), return_inverse=True)
        return moments, np.cumsum(np.bincount(where, step, len(moments))).astype(np.int64)

    def _layer_name(self, function: int) -> str:
        """Return the name of the layer that a function of the program computes; the last one ends the program."""
        layers = self.report.layers
        return layers[function].name if function < len(layers) else "end of the program"


def _origin(times: CommandTimes) -> str:
    """Say where the times come from."""
    return "measured in RTL" if times.measured else "predicted by the cycle model"


def _fields(command: EncodedCommand) -> dict[str, Any]:
    """Return what a command says: its operands by name, and its flags."""
    form = form_of(command.variant)
    return form.values(command.rs1, command.rs2) | {"flags": " ".join(form.flags(command.funct7))}


def _time(cycle: int) -> float:
    """Return a cycle in microseconds of the trace."""
    return round(cycle / 1000, 3)


def _slice(track: int, name: str, begin: int, end: int, args: dict[str, Any]) -> Event:
    return {"ph": "X", "pid": _PROCESS, "tid": track, "ts": _time(begin), "dur": _time(end - begin), "name": name,
            "args": args}


def _counter(name: str, points: Iterator[tuple[int, float]]) -> Iterator[Event]:
    """Yield a counter's events, one wherever it changes."""
    last: float | None = None
    for cycle, value in points:
        if value != last:
            yield {"ph": "C", "pid": _PROCESS, "ts": _time(cycle), "name": name, "args": {"value": value}}
        last = value


def _predicted_rates(found: list[Slice], times: CommandTimes, cycles: int, steps: int) -> list[float]:
    """Return bytes per cycle in each of ``steps`` equal parts of a run, a command's spread evenly over its slice."""
    if not found:
        return [0.0] * steps
    borders = np.array([cycle for each in found for cycle in (each.begin, each.end)], np.float64)
    done = np.cumsum([0, *(times.moved[each.number] for each in found)]).repeat(2)[1:-1]
    at = np.arange(steps + 1) * cycles // steps
    passed = np.interp(at, borders, done, left=0.0, right=float(done[-1]))
    return [round(float(each), 3) for each in np.diff(passed) / np.diff(at)]
