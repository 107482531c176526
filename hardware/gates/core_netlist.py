"""A RISC-V core as Verilog that `mapping` takes: its SystemVerilog read by slang, asynchronous resets made synchronous.

None of our windows has a reset in it, and the event simulator knows no asynchronous one. It costs a gate in front of a
register that the library's flip-flop with asynchronous reset has inside.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.gates.mapping import MappingError, plain_verilog
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.sim.verilog.core_sources import (
    core_sources,
    core_wrapper_sources,
    xpulp_core_sources,
    xpulp_wrapper_sources,
)
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder, yosys_command

__all__ = ["CORES", "BareCore", "core_verilog"]


@dataclass(frozen=True, slots=True)
class BareCore:
    """A core alone: the module that it is, its files, and ours around it."""

    top: str
    files: Callable[[], list[Path]]
    ours: Callable[[], list[Path]]


CORES: Mapping[CoreName, BareCore] = {
    HOST_CORE: BareCore("host_core", core_sources, core_wrapper_sources),
    XPULP_CORE: BareCore("xpulp_core", xpulp_core_sources, xpulp_wrapper_sources),
}
"""The scalar baseline's, and that of the baseline with XPULP's SIMD instructions."""

_SYNCHRONOUS = """\
(* techmap_celltype = "$aldff" *)
module synchronous (input CLK, ALOAD, input [WIDTH-1:0] D, AD, output [WIDTH-1:0] Q);
  parameter WIDTH = 1;
  parameter CLK_POLARITY = 1;
  parameter ALOAD_POLARITY = 1;
  \\$dff #(.WIDTH(WIDTH), .CLK_POLARITY(CLK_POLARITY))
    _TECHMAP_REPLACE_ (.CLK(CLK), .D(ALOAD == ALOAD_POLARITY ? AD : D), .Q(Q));
endmodule
"""
"""The replacement of a register that slang reads as one with an asynchronous load.

Yosys' async2sync puts a second gate behind it, which would have the register's name.
"""

_SCRIPT = """\
read_slang -j 1 --top {top} {files}
hierarchy -top {top}
proc
techmap -map synchronous.v
bwmuxmap
opt_clean
write_verilog -noattr core.v
"""


def core_verilog(name: CoreName) -> str:
    """Return a core, one module with plain names: slang leaves no hierarchy.

    Raises
    ------
    MappingError
        If Yosys cannot read it.
    """
    core = CORES[name]
    files = [*core.files(), *core.ours()]
    script = _SCRIPT.format(top=core.top, files=" ".join(file.name for file in files))
    texts = (script.encode(), _SYNCHRONOUS.encode(), *(file.read_bytes() for file in files))
    key = hashlib.sha256(b"".join(texts)).hexdigest()
    folder = cache_folder() / "gates" / "core" / key
    made = folder / "core.v"
    if not made.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in files:
            shutil.copy(file, folder / file.name)
        write_if_changed(folder / "read.ys", script)
        write_if_changed(folder / "synchronous.v", _SYNCHRONOUS)
        done = subprocess.run([*yosys_command(), "-q", "read.ys"], cwd=folder, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0 or not made.exists():
            raise MappingError(f"Yosys could not read {core.top}: {done.stderr.strip()[-300:]}")
    return plain_verilog(made.read_text())
