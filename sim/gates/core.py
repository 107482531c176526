"""The host core as Verilog that `mapping` takes: its SystemVerilog read by slang, asynchronous resets made synchronous.

None of our windows has a reset in it. The library's flip-flop with asynchronous reset is another cell; ours without
costs less area, and its clock pin more than that one's.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from tilewright.sim.core_sources import core_sources
from tilewright.sim.files import write_if_changed
from tilewright.sim.gates.mapping import MappingError, plain_verilog
from tilewright.sim.toolchain import cache_folder, yosys_executable

TOP = "bare_core"
SCOPE = "TOP.simulated_core.core"
"""Where the core is in the waveforms of the simulator of a core alone."""

_SOURCES = Path(__file__).parents[2]
_OURS = ("sim/harness/clock_gate.sv", "rtl/soc/host_core.sv", "rtl/soc/bare_core.sv")

SCRIPT = """\
read_slang -j 1 --top {top} {files}
hierarchy -top {top}
proc
async2sync
bwmuxmap
opt_clean
write_verilog -noattr core.v
"""


def core_verilog() -> str:
    """Return the core, hierarchical, with plain names; its top module is ``TOP``.

    Raises
    ------
    MappingError
        If Yosys cannot read it.
    """
    files = [*core_sources(), *(_SOURCES / name for name in _OURS)]
    script = SCRIPT.format(top=TOP, files=" ".join(file.name for file in files))
    key = hashlib.sha256(script.encode() + b"".join(file.read_bytes() for file in files)).hexdigest()
    folder = cache_folder() / "gates" / "core" / key
    made = folder / "core.v"
    if not made.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in files:
            shutil.copy(file, folder / file.name)
        write_if_changed(folder / "read.ys", script)
        done = subprocess.run([yosys_executable(), "-q", "read.ys"], cwd=folder, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0 or not made.exists():
            raise MappingError(f"Yosys could not read {TOP}: {done.stderr.strip()[-300:]}")
    return plain_verilog(made.read_text())
