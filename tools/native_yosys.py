"""Yosys' command line on the library of the package pyosys: ``native_yosys.py [-q] [-l LOG] SCRIPT``, ``-`` or ``-V``.

This file is run by its path and imports nothing of Tilewright. Yosys ends the process at an error, so it works in a
child; what it then says goes to standard error, as Yosys' own program has it.
"""

import argparse
import ctypes
import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

__all__ = ["main"]

_ABNORMAL = re.compile(r"^.*\b(?:ERROR|Warning): .*$", re.MULTILINE)
_PARENTS_END = 1
"""Linux' PR_SET_PDEATHSIG, of prctl(2)."""

_VERSION = re.compile(r"Yosys \d\S* \(git sha1 \w+")


def main() -> int:
    """Run what the command line says; return Yosys' exit status, or 128 and the signal that ended it."""
    parser = argparse.ArgumentParser(prog="yosys", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-q", dest="quiet", action="store_true", help="print warnings and errors only")
    parser.add_argument("-l", dest="log", help="write the log to this file")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    parser.add_argument("script", nargs="?", help="a file of commands; - for standard input")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.version:
            return _version(Path(folder))
        if given.script is None:
            parser.error("a script is needed")
        script = given.script
        if script == "-":
            script = f"{folder}/script"
            Path(script).write_bytes(sys.stdin.buffer.read())
        log = given.log or f"{folder}/log"
        status = _in_child(("tee", *(["-q"] if given.quiet else []), "-o", log, "script", script))
        said = _ABNORMAL.findall(Path(log).read_text(errors="replace")) if os.path.exists(log) else []
        if given.quiet:
            sys.stderr.writelines(f"{line}\n" for line in dict.fromkeys(said))
        return status


def _in_child(command: Sequence[str]) -> int:
    """Run a command of Yosys in a child, which ends with this process, whatever ends it; return its status."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)   # Python's own handlers wait for the library to return
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PARENTS_END, signal.SIGKILL)
        try:
            from pyosys import libyosys

            libyosys.Pass.call(libyosys.Design(), list(command))
            ctypes.CDLL(None).fflush(None)   # nothing else of the library is ended in an orderly way
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            sys.stderr.write(f"ERROR: The library of pyosys did not run: {error}; YOSYS may name another Yosys\n")
            os._exit(1)
        os._exit(0)

    def ends(number: int, frame: FrameType | None) -> None:
        os.kill(child, signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ends)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


def _version(folder: Path) -> int:
    written = folder / "version.v"
    if status := _in_child(("tee", "-q", "-o", f"{folder}/log", "write_verilog", str(written))):
        return status
    found = _VERSION.search(written.read_text())
    print(f"{found[0]})" if found else "Yosys")
    return 0


if __name__ == "__main__":
    sys.exit(main())
