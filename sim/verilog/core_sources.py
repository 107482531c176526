"""The cores' files as their wheels have them, in the order that tools must read them in; the host core's licence."""

from pathlib import Path

import pythondata_cpu_cv32e40p
import pythondata_cpu_cv32e40x

_CORE = Path(pythondata_cpu_cv32e40x.data_location)
_XPULP_CORE = Path(pythondata_cpu_cv32e40p.data_location)


def core_sources() -> list[Path]:
    """Return the files of CV32E40X, package and interfaces first; ``cv32e40x_clock_gate`` is not among them."""
    first = [_CORE / "rtl" / name for name in ("include/cv32e40x_pkg.sv", "if_c_obi.sv", "if_xif.sv")]
    return [*first, *sorted((_CORE / "rtl").glob("cv32e40x_*.sv"))]


def xpulp_core_sources() -> list[Path]:
    """Return the files of CV32E40P, without its floating-point unit and its register file made of latches."""
    first = [_XPULP_CORE / "rtl" / "include" / f"cv32e40p_{name}.sv" for name in ("apu_core_pkg", "fpu_pkg", "pkg")]
    left_out = {f"cv32e40p_{name}.sv" for name in ("top", "fp_wrapper", "register_file_latch", "clock_gate")}
    rest = [path for path in sorted((_XPULP_CORE / "rtl").glob("cv32e40p_*.sv")) if path.name not in left_out]
    return [*first, *rest]


def core_license() -> Path:
    """Return the file with the core's licence."""
    return _CORE / "LICENSE"
