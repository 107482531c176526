"""The host core's files, in the order in which tools must read them, and its licence: CV32E40X as its wheel has it."""

from pathlib import Path

import pythondata_cpu_cv32e40x

_CORE = Path(pythondata_cpu_cv32e40x.data_location)


def core_sources() -> list[Path]:
    """Return the SystemVerilog files, package and interfaces first; ``cv32e40x_clock_gate`` is not among them."""
    first = [_CORE / "rtl" / name for name in ("include/cv32e40x_pkg.sv", "if_c_obi.sv", "if_xif.sv")]
    return [*first, *sorted((_CORE / "rtl").glob("cv32e40x_*.sv"))]


def core_license() -> Path:
    """Return the file with the core's licence."""
    return _CORE / "LICENSE"
