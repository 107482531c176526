"""Compile generated C to the ELF that the host core runs, with the clang inside the ziglang wheel."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import ToolError
from tilewright.isa.command_port import COMMANDS_BASE, PortName, WaitName

__all__ = ["FIRMWARE", "MAX_ELF_BYTES", "System", "ToolchainError", "compile_elf", "port_flags",
           "wait_flags"]

FIRMWARE = Path(__file__).parent.parent / "c"
"""Start-up code, linker script and float arithmetic."""

_TARGET = ("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+c", "-mabi=ilp32")
_FLAGS = ("-std=c17", "-O2", "-g0", "-ffreestanding", "-fno-sanitize=all", "-fomit-frame-pointer", "-Wall",
         "-Wextra", "-Werror")

_ALONE = ("-nostdlib",)
"""Link with nothing: programs that call no function of the C compiler's run-time library."""

_LIBRARY = ("-ffp-contract=off", "-fwrapv", "-Wno-unused-parameter", "-Wl,--gc-sections", "-Wl,-s")
"""Link with clang's compiler-rt, where 64-bit divisions and memcpy are, less what is not used. A product and a sum are
two operations: NumPy, which kernels are compared with, rounds after each; and its integers wrap around."""

_TOO_LARGE = ("will not fit in region", "leaves less than")
"""The linker's words for a program that RAM has no room for."""

MAX_ELF_BYTES = 4 << 20
_TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class System:
    """Files that a program is linked with, their linker script, and the RAM that the script names."""

    sources: tuple[Path, ...]
    script: Path
    ram: str


_SIMULATED = System((FIRMWARE / "crt0.S",), FIRMWARE / "link.ld", "1 MiB")
"""The system of `sim.rtl_engine`: ``main`` is called once, and its result ends the run."""


class ToolchainError(ToolError):
    """The C compiler is missing, or rejects generated code."""


def port_flags(port: PortName) -> tuple[str, ...]:
    """Return the flags with which ``tilewright.h`` sends commands to ``port`` of the simulated system."""
    return (f"-DTILEWRIGHT_COMMANDS_BASE={COMMANDS_BASE:#x}u",) if port == "axi4lite" else ()


def wait_flags(wait: WaitName) -> tuple[str, ...]:
    """Return the flags with which ``tilewright.h`` waits at a fence in this way."""
    return ("-DTILEWRIGHT_WAIT_WFI",) if wait == "wfi" else ()


def compile_elf(source: Path, elf: Path, *, flags: Sequence[str] = (), library: bool = False,
                system: System = _SIMULATED) -> None:
    """Compile ``source``, which includes a header beside it, to ``elf``; ``flags`` come after the usual ones.

    Parameters
    ----------
    library
        Whether the program computes what RV32IMC has no instructions for, as floats.
    system
        The system on which it runs.

    Raises
    ------
    ToolchainError
        If that fails; what the C compiler said is kept in a log, which the message names.
    """
    command = [sys.executable, "-m", "ziglang", "cc", *_TARGET, *_FLAGS, *(_LIBRARY if library else _ALONE), *flags,
               f"-Wl,-T,{system.script}", *map(str, system.sources),
               *([str(FIRMWARE / "float32.c")] if library else []), str(source), "-o", str(elf)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_SECONDS,
                              check=False, env=_environment())
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(f"Compiling {source.name} took longer than {_TIMEOUT_SECONDS} s; the model may have too "
                             f"many tiles for this machine: take a larger one") from error
    if done.returncode == 0 and elf.is_file():
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="tilewright-clang-", suffix=".log",
                                     delete=False) as log:
        log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
    if any(words in done.stderr for words in _TOO_LARGE):
        raise ToolchainError(f"Program {source.name} must fit into the {system.ram} of RAM of the host core, and its "
                             "code and data do not: the model has too many tiles, or too many operators on the host "
                             f"core, for this machine; the linker's log is in {log.name} (take a larger machine)")
    raise ToolchainError(f"Compiling {source.name} failed with status {done.returncode}; clang's log is in "
                         f"{log.name} (is the package ziglang installed?)")


def _environment() -> dict[str, str]:
    """Return an environment in which zig keeps its files where ours are kept: it needs a place, home or not."""
    environment = dict(os.environ)
    if cache := environment.get("TILEWRIGHT_CACHE"):
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path(cache).absolute() / "zig"))
    return environment
