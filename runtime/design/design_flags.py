"""Designs as flags: a preset, a file, or either with changes; memory and clock beside it.

::

    base                                      a preset
    camera.toml                               a design file
    base,lanes=8,clusters=2,bus_bytes=16      either with changes
    nano,array=plain,value_tables=false       units that are left out
    base,extension=prelu.py                   with an instruction of your own (docs/extensions.md)
    latency=60,bytes=16                       the timing of main memory
    dram=ddr3l-1600x16                        DRAM, at the design's clock
    dram=sdr-133x16,stalls=20,seed=3          with random stalls on the bus
    80MHz                                     the clock
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

from tilewright.errors import nearest
from tilewright.isa.extension import extended, extension_of, load_extension
from tilewright.isa.machine import ARRAYS, DEFAULT_MACHINE, NAMED, SWITCHES, Machine, MemoryTiming
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_error import DesignError
from tilewright.runtime.design.design_file import MOST_MHZ, machine_of, memory_with, read_design

__all__ = ["clock_of", "design_of", "memory_of", "memory_values", "with_extension"]

_EXTENSION = "extension="
_NUMBER = re.compile(r"(\d{1,12})\s*([KM]iB)?")
_CLOCK = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(k|M|G)?(?:Hz)?", re.IGNORECASE)
_MEGAHERTZ = {"k": 1e-3, "m": 1.0, "g": 1e3}
_Value = int | str | bool
_TRUTH = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
_MEMORY_KEYS = {"latency": "latency_cycles", "bytes": "bytes_per_cycle", "dram": "dram", "stalls": "stall_percent",
                "seed": "seed"}


def design_of(text: str, *, memory: str | None = None, clock: str | None = None, technology: str | None = None,
              extension: Path | str | None = None) -> Design:
    """Return the design given by the values of the options of the same names.

    Parameters
    ----------
    text : str
        The value of ``--machine``.
    memory, clock, technology : str, optional
        They override the design file.
    extension : Path or str, optional
        A file that adds an instruction, or the name of such an entry point; it is executed.

    Raises
    ------
    DesignError
        If the design is invalid; the message names the given and the allowed values.
    """
    design = _stated(text)
    own = design.pricing
    pricing = replace(own, technology=own.technology if technology is None else technology,
                      clock_mhz=own.clock_mhz if clock is None else clock_of(clock))
    timing = design.memory if memory is None else memory_of(memory, design.machine)
    return with_extension(replace(design, memory=timing, pricing=pricing), extension)


def _stated(text: str) -> Design:
    """Return the design that a preset, a file or either with changes states."""
    first, *rest = [part.strip() for part in text.split(",")]
    if files := [part.removeprefix(_EXTENSION) for part in rest if part.startswith(_EXTENSION)]:
        return _with_extension(",".join((first, *(part for part in rest if not part.startswith(_EXTENSION)))), files)
    if "=" in first:
        first, rest = DEFAULT_MACHINE, [first, *rest]
    if first in NAMED:
        design = Design(machine=NAMED[first])
    elif first.endswith(".toml"):
        design = read_design(Path(first))
    else:
        raise DesignError(f"Machine must be one of {', '.join(NAMED)}, a design file (.toml), or one of these with "
                          f"changes, such as base,lanes=8, not {first!r}{nearest(first, NAMED)}")
    if not rest:
        return design
    return replace(design, machine=_changed(design.machine, first, rest))


def _with_extension(text: str, files: list[str]) -> Design:
    """Return the design that ``text`` states with the instruction of the one file in ``files``."""
    if len(files) != 1:
        raise DesignError(f"Machine takes one extension, because only one funct3 is free, not {' and '.join(files)}")
    return with_extension(_stated(text), Path(files[0]))


def with_extension(design: Design, file: Path | str | None) -> Design:
    """Return ``design`` with the instruction of a file, which is executed; unchanged for None.

    Raises
    ------
    DesignError
        If the design has an instruction already.
    ExtensionError
        If the file holds none.
    """
    if file is None:
        return design
    if (own := extension_of(design.machine)) is not None:
        raise DesignError(f"Machine takes one extension, because only one funct3 is free: it has {own.path}, and is "
                          "given "
                          f"{file}")
    return replace(design, machine=extended(design.machine, load_extension(file)))


def _changed(machine: Machine, base: str, changes: list[str]) -> Machine:
    names = [field.name for field in fields(Machine) if field.name != "name"]
    values = _pairs("Machine", changes, {name: name for name in names},
                    {"array": _array, **dict.fromkeys(SWITCHES, _truth)})
    try:
        return machine_of(machine, values, ",".join((base, *changes)))
    except ValueError as error:
        raise DesignError(str(error)) from error


def memory_of(text: str, machine: Machine) -> MemoryTiming:
    """Return the timing of main memory stated by ``text``; missing parts have the machine's defaults.

    Raises
    ------
    DesignError
        If it is not of the form ``latency=CYCLES,bytes=PER_CYCLE`` or ``dram=PART``, either with ``stalls=PERCENT``
        and ``seed=NUMBER``.
    """
    try:
        return memory_with(memory_values(text), machine)
    except ValueError as error:
        raise DesignError(str(error)) from error


def memory_values(text: str) -> dict[str, int | str]:
    """Return the parts of a main memory's timing that ``text`` states, by field of `isa.machine.MemoryTiming`.

    Raises
    ------
    DesignError
        If it is not of the form that :func:`memory_of` takes.
    """
    return _pairs("Memory", text.split(","), _MEMORY_KEYS, {"dram": lambda _what, word: word})


def clock_of(text: str) -> float:
    """Return the megahertz that ``text`` states, such as ``80MHz``, ``80`` or ``1.2GHz``.

    Raises
    ------
    DesignError
        If it states none, or none that a clock can have.
    """
    match = _CLOCK.fullmatch(text.strip())
    mhz = float(match[1]) * _MEGAHERTZ[(match[2] or "M").lower()] if match else 0.0
    if not 0 < mhz <= MOST_MHZ:
        raise DesignError(f"Clock must be a frequency above 0 and of at most {MOST_MHZ:g} MHz, such as 80MHz, "
                          f"not {text!r}")
    return mhz


def _number(what: str, number: str) -> int:
    match = _NUMBER.fullmatch(number)
    if match is None:
        raise DesignError(f"{what} must be an integer, such as 8 or 64KiB, not {number!r}")
    return int(match[1]) * {None: 1, "KiB": 1 << 10, "MiB": 1 << 20}[match[2]]


def _truth(what: str, word: str) -> bool:
    if word.lower() not in _TRUTH:
        raise DesignError(f"{what} must be true or false, not {word!r}")
    return _TRUTH[word.lower()]


def _array(what: str, word: str) -> str:
    if word not in ARRAYS:
        raise DesignError(f"{what} must be one of {', '.join(ARRAYS)}, not {word!r}")
    return word


def _pairs(what: str, parts: list[str], keys: dict[str, str],
           readers: Mapping[str, Callable[[str, str], _Value]] | None = None) -> dict[str, _Value]:
    """Return the values of ``key=value`` by what the keys stand for: integers, but where ``readers`` read them."""
    found: dict[str, _Value] = {}
    for part in parts:
        key, equals, number = (each.strip() for each in part.partition("="))
        if not equals:
            raise DesignError(f"{what} must be changed as key=number, such as {next(iter(keys))}=8, not {part!r}")
        if key not in keys:
            raise DesignError(f"{what} has no {key!r}, but {', '.join(keys)}{nearest(key, keys)}")
        read = (readers or {}).get(key, _number)
        value = read(f"{what} {key}", number)
        if keys[key] in found:
            raise DesignError(f"{what} {key} must be given only once, not again as {part!r}")
        found[keys[key]] = value
    return found
