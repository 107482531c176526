"""The RTL engine: a program on host core, coprocessor and memories in Verilator, cycle by cycle."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.errors import SimulationError
from tilewright.isa.core_names import HOST_CORE, CoreName, HostName
from tilewright.isa.dram.dram import DramTiming
from tilewright.isa.encoding import SEMAPHORES
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.memory import AddressWindow, Fault
from tilewright.sim.run_result import Events, RunResult, StopReason
from tilewright.sim.verilator.build import WaveFormat, build_profiled, build_simulator
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS
from tilewright.sim.verilog.shown_commands import command_kinds

__all__ = ["Disturbance", "Progress", "Provoked", "Simulation", "run_bare", "run_rtl", "train_rtl"]

_MAIN_BYTES = 1 << 30
"""Default size of main memory; pages nobody writes cost nothing."""

_TRAINING_CYCLES = 400_000
"""Cycles of a run whose profile a simulator is compiled by: a second, and several layers of a large network."""

Progress = Callable[[int, int | None], None]
"""Called about twice a second with the cycle count and the last mark the program has set."""

_MAC_STATES = ("idle", "setup", "waits for activations", "waits for weights", "waits for post-processing", "issues")
_UNITS = ("load", "mac", "post", "store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provoked:
    """Mishaps that the simulator provokes.

    Attributes
    ----------
    fail_read, fail_write
        The burst that is answered with an error, by number from 1 on; 0: none.
    fail_response
        That error: 2 (SLVERR) or 3 (DECERR).
    stop_at
        Cycle of a ``stop_request``.
    reset_at
        Cycle before which the system is reset: core, coprocessor and bus. Memory keeps its contents.
    upset
        Cycle in which one bit of a queue turns over, the number of the queue (`sim.verilog.upsets.queue_names`) and
        of the bit, modulo those that it has; takes a build of its own.
    """

    fail_read: int = 0
    fail_write: int = 0
    fail_response: int = 2
    stop_at: int | None = None
    reset_at: int | None = None
    upset: tuple[int, int, int] | None = None

    def options(self) -> list[str]:
        """Return the simulator's options."""
        cycles = {"--stop-at": self.stop_at, "--reset-at": self.reset_at}
        return ["--fail-read", str(self.fail_read), "--fail-write", str(self.fail_write),
                "--fail-response", str(self.fail_response),
                *(each for name, cycle in cycles.items() if cycle is not None for each in (name, str(cycle))),
                *(("--upset", *map(str, self.upset)) if self.upset else ())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Random events from outside, and random contents of what nobody has set; the same for the same numbers.

    Attributes
    ----------
    event_cycles
        Mean time between external interrupts, and between debug requests; 0 for none. The program clears the former.
    event_seed
        Of their times, and of the random numbers that programs read (sim/verilator/harness/memory.h).
    random_state
        Seed of the noise that registers and memories of core and coprocessor begin with; 0 for zeros.
    """

    event_cycles: int = 0
    event_seed: int = 0
    random_state: int = 0

    def options(self) -> list[str]:
        """Return the simulator's options."""
        return ["--event-cycles", str(self.event_cycles), "--event-seed", str(self.event_seed),
                "--random-state", str(self.random_state)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Settings of a run: contents of memory before it, when it is stopped, and what is kept of it.

    Attributes
    ----------
    images
        Pairs of address and content (bytes, or the path of a file), put into memory before reset.
    dumps
        Pairs of address and size in bytes, read when the run has ended.
    max_cycles
        Where to stop at the latest.
    no_progress_cycles
        Stop when for so long no instruction retires, no bus word moves and no unit works.
    main_bytes
        Size of main memory.
    wave
        File for a waveform: FST as `wave_layers` and `wave_modules` say (``.fst``, written without compression), else
        a VCD of every signal. Each takes a build of its own and is slow.
    wave_cycles
        The cycles that the waveform shows; all if there are none.
    wave_layers
        Of FST: the layers that it shows, counted by their status records; all if None.
    wave_modules
        Of FST: how many levels below which modules it shows; all if there are none.
    progress
        See `Progress`.
    provoked
        Faults to provoke in the coprocessor.
    disturbance
        Interrupts, debug halts and noise.
    checked
        Stop at assertions (`build_simulator`), which takes a build of its own, as noise does.
    coverage
        File for the lines and toggles that Verilator counts in the coprocessor; takes a build of its own.
    noted
        Note when each command was at what, for `sim.measured_times`.
    """

    images: Iterable[tuple[int, bytes | Path]] = ()
    dumps: Iterable[tuple[int, int]] = ()
    max_cycles: int | None = None
    no_progress_cycles: int = 1_000_000
    main_bytes: int = _MAIN_BYTES
    wave: Path | str | None = None
    wave_cycles: Sequence[range] = ()
    wave_layers: range | None = None
    wave_modules: Sequence[tuple[int, str]] = ()
    progress: Progress | None = None
    provoked: Provoked | None = None
    disturbance: Disturbance = Disturbance()
    checked: bool = False
    coverage: Path | None = None
    noted: bool = False


_DEFAULT = Simulation()


def run_rtl(
    machine: Machine,
    elf_path: Path | str,
    simulation: Simulation = _DEFAULT,
    *,
    windows: Sequence[AddressWindow] = (),
    timing: MemoryTiming | None = None,
    count_toggles: bool = False,
    host: HostName = HOST_CORE,
) -> RunResult:
    """Run an ELF on a host core with the coprocessor of ``machine``.

    Parameters
    ----------
    elf_path
        Compiled for the port that ``host`` drives.
    windows
        Windows that the coprocessor may access; at most four.
    timing
        Of main memory; ``MemoryTiming.default(machine)`` if None.
    count_toggles
        Count how many register bits change in each block, which takes a build of its own.
    host
        The core beside the coprocessor; each takes a build of its own.

    Raises
    ------
    SimulationError
        If the simulator refuses its input; how the *program* ended is in the result.
    BuildError
        If the simulator cannot be built.
    """
    simulator = build_simulator(machine, tracing=_format(simulation.wave), activity=count_toggles,
                                checked=simulation.checked, covered=simulation.coverage is not None,
                                upsets=simulation.provoked is not None and simulation.provoked.upset is not None,
                                core=host)
    return _run(simulator, elf_path, _options(machine, simulation, windows, timing), simulation)


def train_rtl(machine: Machine, elf_path: Path | str, simulation: Simulation, *, windows: Sequence[AddressWindow],
              timing: MemoryTiming, host: HostName = HOST_CORE) -> None:
    """Compile the simulator of ``machine`` by the profile of the first cycles of a run; see `run_rtl`.

    Raises
    ------
    SimulationError
        If the simulator refuses its input.
    BuildError
        If the simulator cannot be built.
    """
    short = replace(simulation, max_cycles=_TRAINING_CYCLES, dumps=(), noted=False, progress=None)
    options = _options(machine, short, windows, timing)
    build_profiled(machine, host, lambda simulator: _run(simulator, elf_path, options, short))


def _options(machine: Machine, simulation: Simulation, windows: Sequence[AddressWindow],
             timing: MemoryTiming | None) -> list[str]:
    """Return the simulator's options about memory, windows and mishaps."""
    timing = timing or MemoryTiming.default(machine)
    options = ["--latency-cycles", str(timing.latency_cycles), "--bytes-per-cycle", str(timing.bytes_per_cycle)]
    if isinstance(timing, DramTiming):
        options += ["--dram", *map(str, astuple(timing.dram.numbers()))]
    if timing.stall_percent:
        options += ["--stalls", str(timing.stall_percent), str(timing.seed)]
    for window in windows:
        options += ["--window", *(str(int(value)) for value in
                                  (window.base, window.limit, window.readable, window.writable))]
    return options if simulation.provoked is None else options + simulation.provoked.options()


def run_bare(
    elf_path: Path | str,
    simulation: Simulation = _DEFAULT,
    *,
    core: CoreName = HOST_CORE,
    zero_wait: bool = True,
    timing: MemoryTiming | None = None,
) -> RunResult:
    """Run an ELF on a core alone, the host core or that of the XPULP baseline; errors as for `run_rtl`.

    With ``zero_wait``, main memory answers like RAM, in the next cycle: the case most favourable to the core.
    """
    latency_cycles = (timing or MemoryTiming()).latency_cycles
    options = ["--latency-cycles", str(latency_cycles), *(["--zero-wait"] if zero_wait else [])]
    simulator = build_simulator(None, tracing=_format(simulation.wave), core=core)
    return _run(simulator, elf_path, options, simulation)


def _run(simulator: Path, elf_path: Path | str, options: list[str], simulation: Simulation) -> RunResult:
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        command = [str(simulator), "--elf", str(elf_path), "--result", str(folder / "result.json"), *options,
                   "--no-progress-cycles", str(simulation.no_progress_cycles),
                   "--main-bytes", str(simulation.main_bytes), *simulation.disturbance.options()]
        if simulation.max_cycles is not None:
            command += ["--max-cycles", str(simulation.max_cycles)]
        command += _wave_options(simulation)
        if simulation.coverage is not None:
            command += ["--coverage", str(simulation.coverage)]
        notes = folder / "notes" if simulation.noted else None
        if notes is not None:
            command += ["--notes", str(notes)]
        for index, (address, content) in enumerate(simulation.images):
            path = content if isinstance(content, Path) else folder / f"image{index}"
            if isinstance(content, bytes):
                path.write_bytes(content)
            command += ["--image", str(address), str(path)]
        dump_files = []
        for index, (address, size) in enumerate(simulation.dumps):
            dump_files.append(folder / f"dump{index}")
            command += ["--dump", str(address), str(size), str(dump_files[-1])]
        output = _execute(command, folder / "output", simulation.progress)
        shown = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        result = _result(shown, tuple(path.read_bytes() for path in dump_files), output)
        return result if notes is None else replace(result, notes=np.fromfile(notes, "<u8"))


def _format(wave: Path | str | None) -> WaveFormat | None:
    """Return what the simulator must write for a file of that name."""
    return None if wave is None else "fst" if Path(wave).suffix == ".fst" else "vcd"


def _wave_options(simulation: Simulation) -> Iterator[str]:
    """Yield the simulator's options for its waveform."""
    if simulation.wave is None:
        return
    yield from ("--wave", str(simulation.wave), "--command-kinds", command_kinds())
    for cycles in simulation.wave_cycles:
        yield from ("--wave-cycles", str(cycles.start), str(cycles.stop))
    if (layers := simulation.wave_layers) is not None:
        yield from ("--wave-layers", str(layers.start), str(layers.stop))
    for levels, module in simulation.wave_modules:
        yield from ("--wave-scope", str(levels), module)


def _execute(command: list[str], output: Path, progress: Progress | None) -> str:
    """Run the simulator and return what the program printed."""
    complaints = []
    with (open(output, "wb") as printed,
          subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE, text=True) as process):
        assert process.stderr is not None
        try:
            for line in process.stderr:
                words = line.split()
                if words[:1] != ["progress"]:
                    complaints.append(line.strip())
                elif progress is not None:
                    mark = int(words[2])
                    progress(int(words[1]), mark if mark >= 0 else None)
        except BaseException:
            process.kill()  # whoever stops waiting, by Ctrl-C or from ``progress``, stops the simulator
            raise
    printed_text = output.read_bytes().decode(errors="replace")
    if process.returncode != 0:
        complaints += [line for line in printed_text.splitlines() if "%Error" in line]
        raise SimulationError(f"Simulator refused to run: {' '.join(complaints) or f'status {process.returncode}'}")
    return printed_text


def _result(shown: dict[str, Any], dumps: tuple[bytes, ...], output: str) -> RunResult:
    stop_reason = StopReason(shown["stop_reason"])
    code = shown.get("fault_code", 0)
    if code and stop_reason is StopReason.EXIT:
        stop_reason = StopReason.FAULT
    return RunResult(
        cycles=shown["cycles"],
        instructions=shown["instructions"],
        stop_reason=stop_reason,
        exit_code=shown["exit_code"],
        fault=Fault(code, shown["fault_address"]) if code else None,
        pc=shown["trap_pc"] if stop_reason is StopReason.TRAP else shown["pc"],
        address=shown["address"],
        trap_cause=shown["trap_cause"],
        dumps=dumps,
        marks=tuple((number, cycle) for number, cycle in shown["marks"]),
        words_read=shown.get("words_read", 0),
        words_written=shown.get("words_written", 0),
        bursts=(shown.get("read_bursts", 0), shown.get("write_bursts", 0)),
        activity=_activity(shown["status"]) if "status" in shown else "",
        toggles=tuple(dict(zip(ENERGY_BLOCKS, row, strict=True)) for row in shown["toggles"]),
        output=output,
        events=Events(**{name: shown.get(name, 0) for name in ("timers", "externals", "debugs")}),
        sleeps=tuple((first, end) for first, end in shown.get("sleeps", ())),
        wall_seconds=shown["wall_seconds"],
    )


def _activity(status: int) -> str:
    """Say what the ``status`` port of the coprocessor shows; its layout is that of `rtl.coprocessor.Status`."""
    mac_state, busy, queued, semaphores = status & 7, status >> 3 & 15, status >> 7 & 15, status >> 11
    names = [semaphore.name for semaphore in SEMAPHORES]
    return "; ".join((
        f"mac {_MAC_STATES[mac_state]}",
        f"busy: {_listed(_UNITS, busy)}",
        f"commands queued for: {_listed(_UNITS, queued)}",
        f"semaphores above zero: {_listed(names, semaphores)}",
    ))


def _listed(names: Sequence[str], bits: int) -> str:
    return ", ".join(name for i, name in enumerate(names) if bits >> i & 1) or "none"
