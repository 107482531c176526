"""Energy on an FPGA, only from an imported power report of the vendor: power x cycles / clock frequency.

Two forms are read. The text of Vivado's ``report_power`` with exactly one clock (its sections Summary and Clock
Constraints, AMD UG907), and for every other tool JSON::

    {"tool": "Lattice Power Calculator 3.13", "device": "LFE5U-85F",
     "static_w": 0.09, "dynamic_w": 0.21, "clock_mhz": 80}

What the power is of (the coprocessor, or with core and memory controller) and on which activity it rests is the
report's affair: it should have been made of the design that has run, with its activity.
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.tools.files import reason
from tilewright.tools.user_text import read_user_text

__all__ = ["ImportedPower", "read_power"]

_KEYS = ("tool", "device", "static_w", "dynamic_w", "clock_mhz")
_ROUNDING_W = 0.0021
"""Vivado rounds each of three figures to a milliwatt."""

_MICROJOULES = 1e6
_LARGEST_BYTES = 16 << 20

_ROW = re.compile(r"^\|([^|]+)\|([^|]+)\|\s*$", re.MULTILINE)
_CLOCKS = re.compile(r"^\|\s*Clock\s*\|\s*Domain\s*\|\s*Constraint \(ns\)\s*\|\s*\n\+[-+]*\+\s*\n((?:\|.*\n)+)",
                     re.MULTILINE)
_HEAD = re.compile(r"^\|\s*(Tool Version|Device)\s*:\s*(.*?)\s*\|?\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPower:
    """Power of a design by a vendor's tool.

    Attributes
    ----------
    file, tool, device : str
    static_w, dynamic_w : float
        In watts.
    clock_mhz : float
        The clock for which that holds.
    """

    file: str
    tool: str
    device: str
    static_w: float
    dynamic_w: float
    clock_mhz: float

    def energy_uj(self, cycles: int) -> tuple[float, float]:
        """Return the static and the dynamic energy of ``cycles`` in microjoules."""
        seconds = cycles / (self.clock_mhz * 1e6)
        return self.static_w * seconds * _MICROJOULES, self.dynamic_w * seconds * _MICROJOULES


def read_power(path: Path) -> ImportedPower:
    """Return what a power report says.

    Raises
    ------
    InputError
        If it cannot be read, is of neither form, or contradicts itself.
    """
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise InputError(f"Power report {str(path)!r} must be of at most {_LARGEST_BYTES >> 20} MiB")
        text = read_user_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Power report {str(path)!r} cannot be read: {reason(error)}") from error
    return _of_json(path, text) if text.lstrip().startswith("{") else _of_vivado(path, text)


def _of_json(path: Path, text: str) -> ImportedPower:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Power report {str(path)!r} must be JSON, as it begins with a brace: {error}") from error
    if set(data) != set(_KEYS):
        raise InputError(f"Power report {str(path)!r} must have the keys {', '.join(_KEYS)}, "
                         f"not {', '.join(sorted(data))}")
    for key in ("tool", "device"):
        if not isinstance(data[key], str) or not data[key].strip():
            raise InputError(f"Power report {str(path)!r} must state its {key} as text, not {data[key]!r}")
    return _checked(path, data)


def _of_vivado(path: Path, text: str) -> ImportedPower:
    rows = {name.strip(): value.strip() for name, value in reversed(_ROW.findall(text))}  # the summary comes first
    head = dict(_HEAD.findall(text))
    wanted = ("Total On-Chip Power (W)", "Dynamic (W)", "Device Static (W)")
    if missing := [name for name in wanted if name not in rows]:
        raise InputError(f"Power report {str(path)!r} must be JSON or the text of Vivado's report_power, and "
                         f"has no row {missing[0]!r}")
    total, dynamic, static = (_number(path, name, rows[name]) for name in wanted)
    if abs(total - dynamic - static) > _ROUNDING_W:
        raise InputError(f"Power report {str(path)!r} must have dynamic and static power that add up to {total} W, "
                         f"not {dynamic} and {static}")
    periods = [line.split("|")[3].strip() for table in _CLOCKS.findall(text) for line in table.splitlines()]
    if len(periods) != 1:
        raise InputError(f"Power report {str(path)!r} must have one clock for its power to become energy, "
                         f"not {len(periods)}: give the figures as JSON")
    period = _number(path, "Constraint (ns)", periods[0])
    if period <= 0:
        raise InputError(f"Power report {str(path)!r} must have a clock with a period, not {period} ns")
    return _checked(path, {"tool": head.get("Tool Version", "Vivado"), "device": head.get("Device", "not stated"),
                           "static_w": static, "dynamic_w": dynamic, "clock_mhz": 1000 / period})


def _number(path: Path, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"Power report {str(path)!r} must have a number as {name!r}, not {text!r}") from error


def _checked(path: Path, data: dict[str, Any]) -> ImportedPower:
    for key in _KEYS[2:]:
        value = data[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise InputError(f"Power report {str(path)!r} must have a number, not negative, as {key}, not {value!r}")
    if not data["clock_mhz"] or not data["static_w"] + data["dynamic_w"]:
        raise InputError(f"Power report {str(path)!r} must have a clock and a power above zero")
    return ImportedPower(file=path.name, **{key: data[key] for key in _KEYS})
