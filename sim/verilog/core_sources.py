"""The cores' files as their wheels have them, and ours around them, in the order in which tools must read them."""

from pathlib import Path

import pythondata_cpu_cv32e40p
import pythondata_cpu_cv32e40x

__all__ = [
    "VERILATOR_HINTS", "core_license", "core_sources", "core_wrapper_sources", "system_sources", "xpulp_core_sources",
    "xpulp_wrapper_sources",
]

_CORE = Path(pythondata_cpu_cv32e40x.data_location)
_XPULP_CORE = Path(pythondata_cpu_cv32e40p.data_location)
_SOC = Path(__file__).parents[2] / "rtl" / "soc"

VERILATOR_HINTS = _SOC / "cv32e40x.vlt"
"""Tells Verilator which structures of CV32E40X to take apart."""


def core_sources() -> list[Path]:
    """Return the files of CV32E40X, package and interfaces first; its clock gate is not among them, but ours."""
    first = [_CORE / "rtl" / name for name in ("include/cv32e40x_pkg.sv", "if_c_obi.sv", "if_xif.sv")]
    return [*first, *sorted((_CORE / "rtl").glob("cv32e40x_*.sv"))]


def xpulp_core_sources() -> list[Path]:
    """Return the files of CV32E40P, without its floating-point unit and its register file made of latches."""
    first = [_XPULP_CORE / "rtl" / "include" / f"cv32e40p_{name}.sv" for name in ("apu_core_pkg", "fpu_pkg", "pkg")]
    left_out = {f"cv32e40p_{name}.sv" for name in ("top", "fp_wrapper", "register_file_latch", "clock_gate")}
    rest = [path for path in sorted((_XPULP_CORE / "rtl").glob("cv32e40p_*.sv")) if path.name not in left_out]
    return [*first, *rest]


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
