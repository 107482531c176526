"""A board in Verilator, from the same top module as its bitstream: a host at its serial line sends frames to it."""

import fcntl
import hashlib
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tilewright.errors import SimulationError
from tilewright.hardware.board.board_design import INCLUDES, TOP, BoardDesign, board_sources, sources
from tilewright.hardware.board.boards import Board
from tilewright.sim.verilator.build import COMPILER_FLAGS, FLAGS, BuildError
from tilewright.sim.verilator.runtime_library import flags_of_compiled_library, library_compiled_meanwhile
from tilewright.sim.verilog.core_sources import VERILATOR_HINTS, system_sources
from tilewright.sim.verilog.elaborate import coprocessor_verilog
from tilewright.tools.toolchain import cache_folder, verilator_environment

__all__ = ["Line", "build_board_simulator", "talk"]

_SILENCE_CHARACTERS = 4000
"""The longest time to an answer, beyond MAX_NETWORK_CYCLES, in characters on the line."""

_MAX_NETWORK_CYCLES = 10_000_000

_HARNESS = Path(__file__).parent / "harness" / "main.cpp"


@dataclass(frozen=True, slots=True)
class Line:
    """A line from the board, the oscillator's cycle in which it ended, and the LEDs lit then, bit 0 the first."""

    text: str
    cycle: int
    leds: int


def talk(design: BoardDesign, files: Mapping[str, str], frames: Sequence[bytes], *, cycles_per_bit: int,
         progress: Callable[[int], None] = lambda _: None) -> list[Line]:
    """Return a board's lines: one when it has started, and then one for each frame.

    Parameters
    ----------
    design
    files
        Contents of its memories, from `hardware.board.board_design.contents`.
    frames
        Bytes to send; each goes when the answer to the one before has come. No bytes: the reset button is pressed.
    cycles_per_bit
        Of the serial line, at the host's side: of the board's oscillator.
    progress
        Is told the cycle now and then.

    Raises
    ------
    SimulationError
        If it falls silent.
    BuildError
        If the simulator cannot be built.
    """
    simulator = build_board_simulator(design)
    silence = _SILENCE_CHARACTERS * 10 * cycles_per_bit + _MAX_NETWORK_CYCLES
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text)
        (folder / "frames").write_bytes(b"".join(struct.pack("<I", len(frame)) + frame for frame in frames))
        command = [str(simulator), str(cycles_per_bit), str(silence), str(design.board.button_pressed), "frames"]
        output, complaints = folder / "lines", []
        with (output.open("wb") as said,
              subprocess.Popen(command, stdout=said, stderr=subprocess.PIPE, text=True, cwd=folder) as process):
            assert process.stderr is not None
            try:
                for line in process.stderr:
                    first, *rest = line.split()
                    if first == "progress":
                        progress(int(rest[0]))
                    else:
                        complaints.append(line.strip())
            except BaseException:
                process.kill()  # whoever stops waiting stops the simulator
                raise
        lines = [_line(design.board, each) for each in output.read_text(errors="replace").splitlines()]
    if process.returncode != 0:
        raise SimulationError(f"Simulated board answered {len(lines)} times to {len(frames)} frames: "
                              f"{' '.join(complaints) or f'status {process.returncode}'}")
    return lines


def _line(board: Board, text: str) -> Line:
    cycle, outputs, said = text.split(" ", 2)
    leds = sum((int(outputs) >> i & 1 == level) << i for i, level in enumerate(board.lit))
    return Line(said, int(cycle), leds)


def build_board_simulator(design: BoardDesign) -> Path:
    """Return the simulator's executable, built now or by an earlier call; any contents of the memories go with it.

    Raises
    ------
    BuildError
        If it cannot be built.
    ToolMissingError
        If Verilator or something it needs is not installed.
    """
    home = cache_folder() / "simulators"
    home.mkdir(exist_ok=True)
    coprocessor = coprocessor_verilog(design.machine)
    key = _key(design, coprocessor)
    simulator = home / f"board-{key}" / "simulator"
    with (home / f"board-{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process builds, the others wait for it
        if not simulator.exists():
            draft = home / f"board-{key}.draft"
            shutil.rmtree(draft, ignore_errors=True)  # left by a build that failed or was stopped
            draft.mkdir()
            (draft / "coprocessor.v").write_text(coprocessor)
            _build(design, draft)
            simulator.parent.mkdir(exist_ok=True)
            (draft / "model" / "simulator").rename(simulator)
            shutil.rmtree(draft)
    return simulator


def _build(design: BoardDesign, folder: Path) -> None:
    model = folder / "model"
    with library_compiled_meanwhile(model, COMPILER_FLAGS):
        pass
    command = ["verilator", *FLAGS, *flags_of_compiled_library(model), "--top-module", TOP, "-Mdir", str(model),
               "-o", "simulator",
               *(f"-G{name}={value}" for name, value in design.parameters.items()),
               "-CFLAGS", COMPILER_FLAGS, f"+incdir+{INCLUDES}", str(VERILATOR_HINTS),
               *map(str, sources()), str(folder / "coprocessor.v"), str(_HARNESS)]
    log = folder / "build.log"
    with log.open("w") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=verilator_environment(),
                              check=False)
    if done.returncode != 0:
        raise BuildError(f"Simulator of a board with machine {design.machine.name!r} could not be built; "
                         f"the log is {log}")


def _key(design: BoardDesign, coprocessor: str) -> str:
    """Return a hash of everything the executable is made from."""
    versions = [f"{package} {version(package)}" for package in ("verilator", "pythondata-cpu-cv32e40x")]
    digest = hashlib.sha256(repr((design.parameters, FLAGS, COMPILER_FLAGS, versions, TOP)).encode())
    digest.update(coprocessor.encode())
    for path in (*system_sources(), *board_sources(), VERILATOR_HINTS, _HARNESS):
        digest.update(f"\n{path.name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
