"""Run a program on the RTL: host core, coprocessor and memories, cycle by cycle."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import SimulationError
from tilewright.isa.encoding import SEMAPHORES
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.memory import AddressWindow, Fault
from tilewright.sim.verilator.build import CoreName, build_simulator
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

MAIN_BYTES = 1 << 30
"""Default size of main memory; pages nobody writes cost nothing."""

Progress = Callable[[int, int | None], None]
"""Called about twice a second with the cycle count and the last mark the program has set."""

_MAC_STATES = ("idle", "setup", "waits for activations", "waits for weights", "waits for post-processing", "issues")
_UNITS = ("load", "mac", "post", "store")


@dataclass(frozen=True, slots=True)
class RtlResult:
    """What a run has shown.

    Attributes
    ----------
    cycles, instructions : int
        From the release of reset to the end; instructions the host core retired.
    stop_reason : str
        ``exit``, ``trap``, ``fault``, ``bus error``, ``no progress`` or ``cycle limit``.
    exit_code : int
        What ``main`` returned, if it did.
    fault : Fault or None
        Of the coprocessor.
    pc : int
        Instruction in the core's EX stage at the end; of a trap, the instruction that trapped.
    address : int
        Of a bus error.
    trap_cause : int
        ``mcause`` of a trap.
    dumps : list of bytes
        Memory at the end, as asked for.
    marks : list of (number, cycle)
        Numbers that the program stored to the mark device.
    words_read, words_written : int
        Bus words that the coprocessor moved.
    activity : str
        What coprocessor, queues and semaphores were at in the last cycle; empty without a coprocessor.
    toggles : list of dict of str to int
        Register bits of each of `sim.verilog.energy_blocks.ENERGY_BLOCKS` that have changed since reset: at each status
        record in turn, and at the end; empty unless they were counted.
    output : str
        What the program printed.
    wall_seconds, cycles_per_second : float
        Of the simulation.
    """

    cycles: int
    instructions: int
    stop_reason: str
    exit_code: int
    fault: Fault | None
    pc: int
    address: int
    trap_cause: int
    dumps: list[bytes]
    marks: list[tuple[int, int]]
    words_read: int
    words_written: int
    activity: str
    toggles: list[dict[str, int]]
    output: str
    wall_seconds: float
    cycles_per_second: float

    @property
    def explanation(self) -> str:
        """One sentence that says how the run ended."""
        where = f"after {self.cycles} cycles"
        details = {
            "exit": f"exited with code {self.exit_code} {where}",
            "trap": f"trapped with cause {self.trap_cause} at pc {self.pc:#010x} {where}",
            "fault": f"was stopped by a fault of the coprocessor, {self.fault}, {where}",
            "bus error": f"used address {self.address:#010x}, where nothing is, at pc {self.pc:#010x} {where}",
            "no progress": f"hung at pc {self.pc:#010x} {where}; {self.activity or 'the core alone'}",
            "cycle limit": f"was not done {where}, at pc {self.pc:#010x}; {self.activity or 'the core alone'}",
        }
        return f"Program {details[self.stop_reason]}"

    def require_exit(self) -> "RtlResult":
        """Return this result if the program has returned 0.

        Raises
        ------
        SimulationError
            If it ended in any other way.
        """
        if self.stop_reason != "exit" or self.exit_code != 0:
            raise SimulationError(f"{self.explanation}.")
        return self


def run_rtl(
    machine: Machine,
    elf_path: Path | str,
    *,
    images: Iterable[tuple[int, bytes | Path]] = (),
    windows: Sequence[AddressWindow] = (),
    dumps: Iterable[tuple[int, int]] = (),
    timing: MemoryTiming | None = None,
    max_cycles: int | None = None,
    no_progress_cycles: int = 1_000_000,
    main_bytes: int = MAIN_BYTES,
    wave: Path | str | None = None,
    count_toggles: bool = False,
    wave_cycles: Sequence[range] = (),
    progress: Progress | None = None,
) -> RtlResult:
    """Run an ELF on the host core with the coprocessor of ``machine``.

    Parameters
    ----------
    images
        Pairs of address and content (bytes, or the path of a file), put into memory before reset.
    windows
        What the coprocessor may reach; at most four.
    dumps
        Pairs of address and size in bytes, read when the run has ended.
    timing
        Of main memory; ``MemoryTiming.default(machine)`` if None.
    max_cycles
        Where to stop at the latest.
    no_progress_cycles
        Stop when for so long no instruction retires, no bus word moves and no unit works.
    wave
        File for a VCD of every signal, which takes a build of its own and is slow.
    count_toggles
        Count how many register bits change in each block, which takes a build of its own too.
    wave_cycles
        The cycles that the waveform shows; all if there are none.
    progress
        See `Progress`.

    Raises
    ------
    SimulationError
        If the simulator refuses its input; how the *program* ended is in the result.
    BuildError
        If the simulator cannot be built.
    """
    timing = timing or MemoryTiming.default(machine)
    options = ["--latency-cycles", str(timing.latency_cycles), "--bytes-per-cycle", str(timing.bytes_per_cycle)]
    for window in windows:
        options += ["--window", *(str(int(value)) for value in
                                  (window.base, window.limit, window.readable, window.writable))]
    for cycles in wave_cycles:
        options += ["--wave-cycles", str(cycles.start), str(cycles.stop)]
    simulator = build_simulator(machine, tracing=wave is not None, activity=count_toggles)
    return _run(simulator, elf_path, options, images, dumps, max_cycles, no_progress_cycles, main_bytes, wave,
                progress)


def run_bare(
    elf_path: Path | str,
    *,
    core: CoreName = "cv32e40x",
    images: Iterable[tuple[int, bytes | Path]] = (),
    dumps: Iterable[tuple[int, int]] = (),
    zero_wait: bool = True,
    timing: MemoryTiming | None = None,
    max_cycles: int | None = None,
    no_progress_cycles: int = 1_000_000,
    main_bytes: int = MAIN_BYTES,
    wave: Path | str | None = None,
    wave_cycles: Sequence[range] = (),
    progress: Progress | None = None,
) -> RtlResult:
    """Run an ELF on a core alone, the host core or that of the XPULP baseline; parameters as for `run_rtl`.

    With ``zero_wait``, main memory answers like RAM, in the next cycle: the case most favourable to the core.
    """
    options = ["--zero-wait"] if zero_wait else []
    if timing is not None:
        options += ["--latency-cycles", str(timing.latency_cycles)]
    for cycles in wave_cycles:
        options += ["--wave-cycles", str(cycles.start), str(cycles.stop)]
    simulator = build_simulator(None, tracing=wave is not None, core=core)
    return _run(simulator, elf_path, options, images, dumps, max_cycles, no_progress_cycles, main_bytes, wave,
                progress)


def _run(
    simulator: Path,
    elf_path: Path | str,
    options: list[str],
    images: Iterable[tuple[int, bytes | Path]],
    dumps: Iterable[tuple[int, int]],
    max_cycles: int | None,
    no_progress_cycles: int,
    main_bytes: int,
    wave: Path | str | None,
    progress: Progress | None,
) -> RtlResult:
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        command = [str(simulator), "--elf", str(elf_path), "--result", str(folder / "result.json"), *options,
                   "--no-progress-cycles", str(no_progress_cycles), "--main-bytes", str(main_bytes)]
        if max_cycles is not None:
            command += ["--max-cycles", str(max_cycles)]
        if wave is not None:
            command += ["--wave", str(wave)]
        for index, (address, content) in enumerate(images):
            path = content if isinstance(content, Path) else folder / f"image{index}"
            if isinstance(content, bytes):
                path.write_bytes(content)
            command += ["--image", str(address), str(path)]
        dump_files = []
        for index, (address, size) in enumerate(dumps):
            dump_files.append(folder / f"dump{index}")
            command += ["--dump", str(address), str(size), str(dump_files[-1])]
        output = _execute(command, folder / "output", progress)
        shown = json.loads((folder / "result.json").read_text())
        return _result(shown, [path.read_bytes() for path in dump_files], output)


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
    if process.returncode != 0:
        raise SimulationError(f"Simulator refused to run: {' '.join(complaints) or f'status {process.returncode}'}")
    return output.read_bytes().decode(errors="replace")


def _result(shown: dict, dumps: list[bytes], output: str) -> RtlResult:
    trapped = shown["stop_reason"] == "trap"
    code = shown.get("fault_code", 0)
    seconds = shown["wall_seconds"]
    return RtlResult(
        cycles=shown["cycles"],
        instructions=shown["instructions"],
        stop_reason=shown["stop_reason"],
        exit_code=shown["exit_code"],
        fault=Fault(code, shown["fault_address"]) if code else None,
        pc=shown["trap_pc"] if trapped else shown["pc"],
        address=shown["address"],
        trap_cause=shown["trap_cause"],
        dumps=dumps,
        marks=[(number, cycle) for number, cycle in shown["marks"]],
        words_read=shown.get("words_read", 0),
        words_written=shown.get("words_written", 0),
        activity=_activity(shown["status"]) if "status" in shown else "",
        toggles=[dict(zip(ENERGY_BLOCKS, row, strict=True)) for row in shown["toggles"]],
        output=output,
        wall_seconds=seconds,
        cycles_per_second=shown["cycles"] / seconds if seconds else 0.0,
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
