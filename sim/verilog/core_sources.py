"""The cores' files from their wheels, and our wrappers around them, in the order in which tools must read them."""

from dataclasses import dataclass
from pathlib import Path

import pythondata_cpu_cv32e40p
import pythondata_cpu_cv32e40x
import pythondata_cpu_ibex

from tilewright.isa.core_names import IBEX_CORE, XPULP_CORE, CoreName, HostName

__all__ = [
    "CORE_WHEELS", "VERILATOR_HINTS", "CoreFiles", "core_files", "core_license", "core_sources",
    "core_wrapper_sources", "system_sources", "xpulp_core_sources", "xpulp_wrapper_sources",
]

CORE_WHEELS = ("pythondata-cpu-cv32e40x", "pythondata-cpu-cv32e40p", "pythondata-cpu-ibex")
"""Packages that bring the cores."""

_CORE = Path(pythondata_cpu_cv32e40x.data_location)
_XPULP_CORE = Path(pythondata_cpu_cv32e40p.data_location)
_IBEX = Path(pythondata_cpu_ibex.data_location)
_IBEX_PRIMITIVES = _IBEX / "vendor/lowrisc_ip/ip/prim/rtl"
_SOC = Path(__file__).parents[2] / "rtl" / "soc"

VERILATOR_HINTS = _SOC / "cv32e40x.vlt"
"""Tells Verilator which structures of CV32E40X to take apart."""

_IBEX_PARTS = (
    "alu", "branch_predict", "compressed_decoder", "controller", "core", "counter", "cs_registers", "csr", "decoder",
    "dummy_instr", "ex_block", "fetch_fifo", "id_stage", "if_stage", "load_store_unit", "multdiv_fast", "multdiv_slow",
    "pmp", "prefetch_buffer", "register_file_ff", "wb_stage",
)


@dataclass(frozen=True, slots=True)
class CoreFiles:
    """Files that make up the simulator of a core.

    Attributes
    ----------
    sources : tuple of Path
        The core's, packages first.
    includes : tuple of Path
        Folders in which they find what they include.
    hints : tuple of Path
        What tells Verilator which structures of the core to take apart.
    alone : tuple of Path
        Our files around the core alone, whose top module is ``alone_top``; none if nothing runs on it alone.
    system : tuple of Path
        Our files around core and coprocessor, whose top module is ``system_top``; none if it is no host.
    """

    sources: tuple[Path, ...]
    includes: tuple[Path, ...]
    hints: tuple[Path, ...] = ()
    alone: tuple[Path, ...] = ()
    alone_top: str = ""
    system: tuple[Path, ...] = ()
    system_top: str = ""


def core_files(core: CoreName | HostName) -> CoreFiles:
    """Return the files that make up a simulator of ``core``."""
    if core == XPULP_CORE:
        return CoreFiles(tuple(xpulp_core_sources()), (_XPULP_CORE / "rtl" / "include",),
                         alone=tuple(xpulp_wrapper_sources()), alone_top="xpulp_core")
    if core == IBEX_CORE:
        ours = tuple(_SOC / f"{name}.sv" for name in ("ibex_core_alone", "axilite_bridge", "ibex_soc"))
        return CoreFiles(tuple(_ibex_sources()), (_IBEX_PRIMITIVES, _IBEX / "vendor/lowrisc_ip/dv/sv/dv_utils"),
                         system=ours, system_top="ibex_soc")
    return CoreFiles(tuple(core_sources()), (_CORE / "rtl" / "include",), hints=(VERILATOR_HINTS,),
                     alone=tuple(core_wrapper_sources()), alone_top="host_core", system=tuple(system_sources()),
                     system_top="tilewright_soc")


def core_sources() -> list[Path]:
    """Return the files of CV32E40X, package and interfaces first; its clock gate is not among them, but ours."""
    first = [_CORE / "rtl" / name for name in ("include/cv32e40x_pkg.sv", "if_c_obi.sv", "if_xif.sv")]
    return [*first, *sorted((_CORE / "rtl").glob("cv32e40x_*.sv"))]


def xpulp_core_sources() -> list[Path]:
    """Return the files of CV32E40P, without its floating-point unit and its latch-based register file."""
    first = [_XPULP_CORE / "rtl" / "include" / f"cv32e40p_{name}.sv" for name in ("apu_core_pkg", "fpu_pkg", "pkg")]
    left_out = {f"cv32e40p_{name}.sv" for name in ("top", "fp_wrapper", "register_file_latch", "clock_gate")}
    rest = [path for path in sorted((_XPULP_CORE / "rtl").glob("cv32e40p_*.sv")) if path.name not in left_out]
    return [*first, *rest]


def _ibex_sources() -> list[Path]:
    """Return the files of Ibex's core and registers, without cache, lockstep and tracer."""
    return [_IBEX_PRIMITIVES / "prim_cipher_pkg.sv", _IBEX / "rtl/ibex_pkg.sv",
            *(_IBEX / f"rtl/ibex_{name}.sv" for name in _IBEX_PARTS)]


def core_wrapper_sources() -> list[Path]:
    """Return our files around CV32E40X alone; the top module is ``host_core``."""
    return [_SOC / "clock_gate.sv", _SOC / "host_core.sv"]


def xpulp_wrapper_sources() -> list[Path]:
    """Return our files around CV32E40P; the top module is ``xpulp_core``."""
    return [_SOC / "xpulp_core.sv"]


def system_sources() -> list[Path]:
    """Return our files around CV32E40X and the coprocessor; the top module is ``tilewright_soc``."""
    return [*core_wrapper_sources(), _SOC / "tilewright_soc.sv"]


def core_license() -> Path:
    """Return the file with the core's licence."""
    return _CORE / "LICENSE"
