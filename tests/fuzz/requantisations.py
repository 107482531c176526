"""Random requantisations in RTL against their definitions: ``python -m tests.fuzz.requantisations --count 10000000``.

The unit of a machine with `integer_requantise` runs in Verilator, and C++ draws and judges (`requantisations.cpp`):
each of its roundings is held to the definition of its source. Exit status 1 if a result differs.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from amaranth import unsigned

from tilewright.rtl.arithmetic.requantise import Requantise
from tilewright.sim.verilog.elaborate import verilog
from tilewright.tools.toolchain import verilator_environment

__all__ = ["KINDS", "build", "differing"]

KINDS = ("floor", "half up", "once", "twice", "half to even", "half away")
"""What there is, in the order of the program: by a shift, by a long multiplier, by a float32 scale; by a long one."""

_TOP = """
module top(input clk, input [137:0] request, input given, input [5:0] shifts, input is_long, input twice,
           output [7:0] level, output leaves);
  dut dut(.clk(clk), .rst(1'b0), .i__payload(request), .i__valid(given), .shifts(shifts), .long(is_long),
          .twice(twice), .o__payload(level), .o__valid(leaves));
endmodule
"""
"""The unit by names that C++ has."""

_PROGRAM = Path(__file__).with_suffix(".cpp")


def build(folder: Path) -> Path:
    """Return the program, made in a folder.

    Raises
    ------
    CalledProcessError
        If Verilator or the compiler fails.
    """
    source = folder / "top.v"
    source.write_text(verilog(Requantise(unsigned(0), integers=True), "dut") + _TOP)
    subprocess.run(["verilator", "--cc", "--exe", "--build", "-O3", "-CFLAGS", "-O2", "--top-module", "top",
                    "-Wno-fatal", "-Mdir", str(folder / "made"), "-o", "run", str(source), str(_PROGRAM)],
                   check=True, capture_output=True, env=verilator_environment())
    return folder / "made" / "run"


def differing(program: Path, kind: str, count: int, seed: int) -> str:
    """Return what a run of one kind has found to differ, as it prints it; empty if nothing does."""
    done = subprocess.run([program, str(KINDS.index(kind)), str(count), str(seed)], check=False, capture_output=True,
                          text=True)
    return "" if done.returncode == 0 and f"{count} requantisations, 0 differ" in done.stdout else done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.requantisations")
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    found = 0
    with TemporaryDirectory(prefix="tilewright-") as folder:
        program = build(Path(folder))
        for kind in KINDS:
            wrong = differing(program, kind, given.count, given.seed)
            found += bool(wrong)
            print(f"{kind}: {wrong or f'{given.count:,} of {given.count:,} equal'}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
