"""Faults on purpose, many of them, in RTL: ``python -m tests.fuzz.faults --count 2000 --seed 0``.

Each run takes a program of random layers and one mishap: SLVERR or DECERR for a burst, a stop from outside in some
cycle, a reset of the system in some cycle, windows that are too small, a count of zero, a signal that never comes.
The program aborts after a fault and runs once more. Every run must end with the right tensors, or with a fault that
software has seen; a hang or wrong tensors without a fault is a failure, and makes the exit status 1.

With ``--upsets N`` there are as many runs besides in which one bit of a queue's memory turns over, in some cycle. They
are for information: nothing in the gateware protects those bits, and no verdict is a failure.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.support.random_layers import random_layer
from tests.support.side_by_side import side_by_side
from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.elf import compile_elf, port_flags
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.plan.planner import DoesNotFitError, plan_layer
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import HOST_CORE, HOSTS, HostName
from tilewright.isa.counters import WATCHDOG
from tilewright.isa.counts import COUNTS
from tilewright.isa.emit_c import header
from tilewright.isa.machine import preset
from tilewright.isa.memory import AddressWindow
from tilewright.isa.program import Function, Issue, Loop, Program, Statement, affine
from tilewright.sim.rtl_engine import Provoked, Simulation, run_rtl
from tilewright.sim.run_result import RunResult, StopReason
from tilewright.sim.verilog.elaborate import coprocessor_verilog
from tilewright.sim.verilog.upsets import queue_names

__all__ = ["MISHAPS", "Campaign", "main"]

MACHINE = preset("nano")
MISHAPS = ("read", "write", "stop", "window", "zero", "signal", "reset")
RUNS_PER_PROGRAM = 40
LAYERS = 3
_ERRORS = (2, 3)  # SLVERR, DECERR
_NEVER = (1 << 62, 0, 0)
RECOVERED, REPORTED = 128, 192
"""Exit codes, plus the fault's: the second run was without a fault; it was not."""

MAIN = f"""
int main(void)
{{
    int first = run_network();
    if (first == 0)
        return 0;
    if (tw_sta_abort())
        return {REPORTED} + first;
    return run_network() ? {REPORTED} + first : {RECOVERED} + first;
}}
"""


@dataclass(frozen=True, slots=True)
class _Sample:
    """A program, its memory before, and its tensors after an undisturbed run."""

    compiled: Compiled
    images: list[tuple[int, bytes]]
    dumps: list[tuple[int, int]]
    elf: Path
    clean: RunResult


class Campaign:
    """Runs with mishaps, reproducible from ``seed``; ``verdicts`` counts how they ended, by mishap."""

    def __init__(self, seed: int, folder: Path, host: HostName = HOST_CORE) -> None:
        self.host = host
        self.rng = random.Random(seed)
        self.seed = seed
        self.folder = folder
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.upsets: Counter[tuple[str, str]] = Counter()
        self.failures: list[str] = []

    def run(self, count: int) -> None:
        """Do ``count`` runs."""
        for number in range(count):
            if number % RUNS_PER_PROGRAM == 0:
                sample = self._sample(number)
            mishap = MISHAPS[number % len(MISHAPS)]
            verdict = self._one(sample, mishap)
            self.verdicts[mishap, verdict] += 1
            if verdict in ("hang", "silent"):
                self.failures.append(f"run {number} of seed {self.seed}: {mishap}: {verdict}")

    def run_upsets(self, count: int) -> None:
        """Do ``count`` runs with an upset each; none of them is a failure."""
        queues = queue_names(coprocessor_verilog(MACHINE, PORT_OF[self.host]))
        for number in range(count):
            if number % RUNS_PER_PROGRAM == 0:
                sample = self._sample(number, Provoked(upset=_NEVER))
            queue = self.rng.randrange(len(queues))
            upset = (self.rng.randrange(sample.clean.cycles), queue, self.rng.getrandbits(16))
            verdict = _upset_verdict(self._provoke(sample, Provoked(upset=upset)), sample)
            self.upsets[_kind(queues[queue]), verdict] += 1

    def _sample(self, number: int, provoked: Provoked | None = None) -> _Sample:
        numbers = np.random.default_rng([self.seed, number])
        layers = []
        while len(layers) < LAYERS:
            layer = random_layer(numbers, longest=9, widest=20)
            try:
                plan_layer(layer, MACHINE)
            except DoesNotFitError:
                continue
            layers.append(layer)
        compiled = compile_layers(side_by_side(layers), MACHINE, keep_tensors=True)
        images = [*compiled.images, *((compiled.memory.tensors[info.name], numbers.bytes(tensor_bytes(info)))
                                      for info in compiled.network.inputs)]
        dumps = [(address, tensor_bytes(info)) for info, address in compiled.tensors.values()]
        elf = self._compile(compiled.program, "clean")
        clean = run_rtl(MACHINE, elf, Simulation(images=images, dumps=dumps, provoked=provoked),
                        windows=compiled.windows, host=self.host).require_exit()
        return _Sample(compiled, images, dumps, elf, clean)

    def _compile(self, program: Program, name: str) -> Path:
        (self.folder / "tilewright.h").write_text(header())
        source, elf = self.folder / f"{name}.c", self.folder / f"{name}.elf"
        source.write_text(program_text(program, name).replace("int main(void)", "static int run_network(void)") + MAIN)
        compile_elf(source, elf, flags=port_flags(PORT_OF[self.host]))
        return elf

    def _one(self, sample: _Sample, mishap: str) -> str:
        rng, elf, windows, provoked = self.rng, sample.elf, sample.compiled.windows, None
        reads, writes = sample.clean.bursts
        if mishap == "read":
            provoked = Provoked(fail_read=rng.randint(1, reads), fail_response=rng.choice(_ERRORS))
        elif mishap == "write":
            provoked = Provoked(fail_write=rng.randint(1, writes), fail_response=rng.choice(_ERRORS))
        elif mishap == "stop":
            provoked = Provoked(stop_at=rng.randrange(sample.clean.cycles))
        elif mishap == "reset":
            provoked = Provoked(reset_at=rng.randrange(sample.clean.cycles))
        elif mishap == "window":
            windows = _narrowed(rng, windows)
        else:
            change = _without_count if mishap == "zero" else _without_signal
            elf = self._compile(_changed(rng, sample.compiled.program, change), "changed")
        result = self._provoke(replace(sample, elf=elf), provoked, windows)
        return _verdict(result, right=result.dumps == sample.clean.dumps)

    def _provoke(self, sample: _Sample, provoked: Provoked | None,
                 windows: tuple[AddressWindow, ...] | None = None) -> RunResult:
        return run_rtl(MACHINE, sample.elf, Simulation(
            images=sample.images, dumps=sample.dumps, provoked=provoked,
            max_cycles=4 * sample.clean.cycles + 8 * MACHINE.watchdog_cycles),
            windows=sample.compiled.windows if windows is None else windows, host=self.host)


def _verdict(result: RunResult, *, right: bool) -> str:
    if result.stop_reason not in (StopReason.EXIT, StopReason.FAULT):
        return "hang"
    if result.exit_code >= REPORTED:
        return "reported"
    if not right:
        return "silent"
    return "recovered" if result.exit_code >= RECOVERED else "right"


def _upset_verdict(result: RunResult, sample: _Sample) -> str:
    verdict = _verdict(result, right=result.dumps == sample.clean.dumps)
    if verdict in ("recovered", "reported"):
        code = result.exit_code - (RECOVERED if verdict == "recovered" else REPORTED)
        return "watchdog" if code == WATCHDOG else "other fault"
    return {"right": "masked", "silent": "silently wrong", "hang": "hung"}[verdict]


def _kind(queue: str) -> str:
    """Return what a queue, by its path in the coprocessor, is for."""
    kinds = {"dispatcher": "commands, in front of the units", "adapter": "commands and answers, in the port",
             "axi": "bursts", "load": "the load's requests and segments", "store": "the store's requests and words"}
    return next((kind for part, kind in kinds.items() if part in queue.split(".")[:2]), "post-processing and array")


def _table(upsets: Counter[tuple[str, str]]) -> str:
    """Return the table of the upsets, a row for each kind of queue."""
    verdicts = ("masked", "watchdog", "other fault", "silently wrong", "hung")
    kinds = sorted({kind for kind, _ in upsets})
    rows = [f"| {kind} | {' | '.join(str(upsets[kind, verdict]) for verdict in verdicts)} |" for kind in kinds]
    return "\n".join([f"| queue | {' | '.join(verdicts)} |", "|---|" + "--:|" * len(verdicts), *rows])


def _narrowed(rng: random.Random, windows: tuple[AddressWindow, ...]) -> tuple[AddressWindow, ...]:
    """Return the windows, one of them ending earlier."""
    index = rng.randrange(len(windows))
    window = windows[index]
    limit = rng.randrange(window.base + 1, window.limit)
    return (*windows[:index], replace(window, limit=limit), *windows[index + 1:])


def _without_count(issue: Issue, rng: random.Random) -> Issue | None:
    """Return the issue with one of its counts zero; none if it has none."""
    counts = COUNTS.get((issue.mnemonic, issue.variant))
    return replace(issue, operands={**issue.operands, rng.choice(counts): affine(0)}) if counts else None


def _without_signal(issue: Issue, rng: random.Random) -> Issue | None:
    """Return the issue without one of its signals; none if it has none."""
    signals = [flag for flag in issue.flags if flag.startswith("signal_")]
    gone = rng.choice(signals) if signals else None
    return replace(issue, flags=tuple(flag for flag in issue.flags if flag != gone)) if gone else None


def _changed(rng: random.Random, program: Program, change) -> Program:
    """Return the program with ``change`` applied to one of the issues that it applies to."""
    chosen = rng.choice([issue for function in program.functions for issue in _issues(function.body)
                         if change(issue, random.Random(0)) is not None])
    return Program(tuple(replace(function, body=_replaced(function, chosen, change(chosen, rng)))
                         for function in program.functions))


def _issues(body: tuple[Statement, ...]) -> list[Issue]:
    found: list[Issue] = []
    for each in body:
        found += _issues(each.body) if isinstance(each, Loop) else [each] if isinstance(each, Issue) else []
    return found


def _replaced(body: Function | Loop, old: Issue, new: Issue) -> tuple[Statement, ...]:
    return tuple(new if each is old else
                 replace(each, body=_replaced(each, old, new)) if isinstance(each, Loop) else each
                 for each in body.body)


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign and print how its runs ended; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--upsets", type=int, default=0, help="runs with one bit of a queue turned over")
    parser.add_argument("--host", choices=HOSTS, default=HOST_CORE)
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        campaign = Campaign(options.seed, Path(folder), options.host)
        campaign.run(options.count)
        took = time.monotonic() - began
        campaign.run_upsets(options.upsets)
    for (mishap, verdict), count in sorted(campaign.verdicts.items()):
        print(f"{mishap:8} {verdict:10} {count:6}")
    print(f"{options.count} runs in {took:.0f} s, {len(campaign.failures)} hung or silently wrong")
    for failure in campaign.failures:
        print(failure)
    if options.upsets:
        print(f"{options.upsets} upsets:")
        print(_table(campaign.upsets))
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
