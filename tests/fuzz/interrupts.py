"""Random interrupts and debug halts in RTL: ``python -m tests.fuzz.interrupts --events 10000 --seed 0``.

Networks run while a timer, an external interrupt and debug requests come at random times. Handlers use RAM and main
memory, sleep, and let others interrupt them. Half of the runs wait at fences, half sleep there (``--wait wfi``). The
simulator checks the core's assertions and CV-X-IF's (sim/verilator/checks), and begins with noise in every register.
Every run must end with the tensors of an undisturbed one, with as many commands carried out, and each instruction
offloaded committed once or killed; anything else is a failure, and makes the exit status 1.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.compiler.compile import Compiled, compile_file
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.elf import compile_elf, port_flags
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.errors import SimulationError
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import HOST_CORE, HOSTS, HostName
from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.isa.emit_c import header
from tilewright.isa.machine import Machine, preset
from tilewright.isa.memory import MAIN_BASE
from tilewright.models import builtin
from tilewright.sim.rtl_engine import Disturbance, Simulation, run_rtl
from tilewright.sim.run_result import RunResult, StopReason

__all__ = ["NETWORKS", "WAITS", "Campaign", "main"]

NETWORKS = ("lenet5", "mlperf-kws")
WAITS = {"poll": (), "wfi": ("-DTILEWRIGHT_WAIT_WFI",)}
EVENT_CYCLES = 400
"""Mean time between events of a kind."""

_HANDLERS = Path(__file__).with_suffix(".c")
_COMMANDS = [counter.name for counter in COUNTERS].index("commands")
_XIF = re.compile(r"xif: (\d+) accepted, (\d+) committed, (\d+) killed, (\d+) vanished, (\d+) answered")
_PAGE = 1 << 12


@dataclass(frozen=True, slots=True)
class _Sample:
    """A network with its inputs, as it waits in one way, and its undisturbed run."""

    compiled: Compiled
    images: list[tuple[int, bytes]]
    dumps: list[tuple[int, int]]
    elf: Path
    clean: RunResult


class Campaign:
    """Runs with interrupts, reproducible from ``seed``; ``counts`` adds up what happened."""

    def __init__(self, seed: int, folder: Path, *, machine: Machine, host: HostName = HOST_CORE) -> None:
        self.seed = seed
        self.folder = folder
        self.machine = machine
        self.host = host
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, events: int, networks: tuple[str, ...] = NETWORKS) -> None:
        """Run the networks in turn, each in each way to wait at least once, until there were so many events."""
        samples = [(name, wait, self._sample(name, wait)) for name in networks for wait in WAITS]
        while (self.counts["events"] < events or self.counts["runs"] < len(samples)) and not self.failures:
            name, wait, sample = samples[self.counts["runs"] % len(samples)]
            seed = 1000 * self.seed + self.counts["runs"] + 1
            self.counts["runs"] += 1
            if found := self._one(sample, seed):
                self.failures.append(f"{name}, {wait}, seed {seed}: {found}")

    def _sample(self, name: str, wait: str) -> _Sample:
        compiled = compile_file(builtin(name), self.machine, keep_tensors=True)
        numbers = np.random.default_rng(self.seed)
        images = [*compiled.images, *((compiled.memory.tensors[info.name], numbers.bytes(tensor_bytes(info)))
                                      for info in compiled.network.inputs)]
        dumps = [*((record, 4 * RECORD_WORDS) for record in compiled.memory.records),
                 *((address, tensor_bytes(info)) for info, address in compiled.tensors.values())]
        elf, undisturbed = (self._compile(compiled, f"{name}-{wait}", (*WAITS[wait], f"-DDISTURBED={disturbed}"))
                            for disturbed in (1, 0))
        clean = run_rtl(self.machine, undisturbed, Simulation(images=images, dumps=dumps, checked=True),
                        windows=compiled.windows, host=self.host).require_exit()
        return _Sample(compiled, images, dumps, elf, clean)

    def _compile(self, compiled: Compiled, name: str, flags: tuple[str, ...]) -> Path:
        folder = self.folder / f"{name}{flags[-1][-1]}"
        folder.mkdir()
        (folder / "tilewright.h").write_text(header())
        source, elf = folder / "model.c", folder / "model.elf"
        source.write_text(program_text(compiled.program, name, entry="static int run_network") + _HANDLERS.read_text())
        scratch = -(-(MAIN_BASE + compiled.memory_bytes) // _PAGE) * _PAGE
        compile_elf(source, elf, library=any(isinstance(plan, CorePlan) for plan in compiled.plans),
                    flags=(*port_flags(PORT_OF[self.host]), *flags, f"-DINTERRUPT_SCRATCH={scratch:#x}u",
                           f"-DTIMER_CYCLES={EVENT_CYCLES}"))
        return elf

    def _one(self, sample: _Sample, seed: int) -> str:
        """Do one run; return what was wrong with it, or nothing."""
        disturbance = Disturbance(event_cycles=EVENT_CYCLES, event_seed=seed, random_state=seed)
        simulation = Simulation(images=sample.images, dumps=sample.dumps, disturbance=disturbance, checked=True,
                                max_cycles=50 * sample.clean.cycles)
        try:
            result = run_rtl(self.machine, sample.elf, simulation, windows=sample.compiled.windows, host=self.host)
        except SimulationError as error:
            return str(error)
        events = result.events
        self.counts += Counter(events=events.timers + events.externals + events.debugs, timers=events.timers,
                               externals=events.externals, halts=events.debugs, sleeps=len(result.sleeps),
                               asleep=sum(end - first for first, end in result.sleeps),
                               cycles=result.cycles, undisturbed=sample.clean.cycles)
        if result.stop_reason is not StopReason.EXIT or result.exit_code:
            return result.explanation
        records = len(sample.compiled.memory.records)
        if result.dumps[records:] != sample.clean.dumps[records:]:
            return "other tensors than without interrupts"
        if (commands := _commands(result, records)) != (wanted := _commands(sample.clean, records)):
            return f"{commands} commands up to the last record instead of {wanted}"
        return self._xif(result, sample.clean)

    def _xif(self, result: RunResult, clean: RunResult) -> str:
        """Return what was wrong on CV-X-IF, or nothing."""
        if self.host != HOST_CORE:
            return ""
        accepted, committed, killed, vanished, answered = _xif_counts(result)
        self.counts += Counter(offloaded=accepted, killed=killed, vanished=vanished)
        if accepted != committed + killed + vanished or committed != answered:
            return (f"{accepted} instructions accepted, {committed} committed, {killed} killed, {vanished} flushed in "
                    f"ID, {answered} answered")
        expected = _xif_counts(clean)[1]
        return "" if committed == expected else f"{committed} instructions committed instead of {expected}"


def _commands(result: RunResult, records: int) -> int:
    """Return how many commands the last status record counts; those before it see some that were sent after them."""
    return int(np.frombuffer(result.dumps[records - 1], "<u4")[_COMMANDS])


def _xif_counts(result: RunResult) -> tuple[int, ...]:
    found = _XIF.search(result.output)
    assert found is not None, result.output
    return tuple(map(int, found.groups()))


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign and print what happened; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--machine", default="nano")
    parser.add_argument("--host", choices=HOSTS, default=HOST_CORE)
    parser.add_argument("--network", choices=NETWORKS, help="one instead of all in turn")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        campaign = Campaign(options.seed, Path(folder), machine=preset(options.machine), host=options.host)
        campaign.run(options.events, NETWORKS if options.network is None else (options.network,))
    for what, count in sorted(campaign.counts.items()):
        print(f"{what:12} {count:12,}")
    print(f"{campaign.counts['events']:,} events in {time.monotonic() - began:.0f} s, {len(campaign.failures)} wrong")
    print(*campaign.failures, sep="\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
