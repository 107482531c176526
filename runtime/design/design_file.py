"""Design files: machine, memory, clock and energy in TOML.

::

    name = "camera"

    [machine]               # every key of `isa.machine.Machine`; what is left out is the preset's
    preset = "base"
    lanes = 8
    clusters = 2
    activation_bytes = "64 KiB"
    array = "plain"         # no conv23
    value_tables = false    # and no value tables: what is left out is not built

    [memory]                # left out: 20 cycles, then one bus word per cycle
    latency_cycles = 60
    bytes_per_cycle = 16
    # or a part of isa/dram/parts.py: dram = "ddr3l-1600x16"; either with stall_percent and seed

    [clock]                 # left out: the technology's
    mhz = 80

    [energy]
    technology = "sky130"   # a name, or a TOML file beside this one
    dram = "lpddr4"
    gated = false
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, ValidationError, create_model

from tilewright.energy.pricing import TECHNOLOGY, Pricing
from tilewright.energy.technology_text import DRAM
from tilewright.errors import nearest
from tilewright.isa.dram.dram import DramTiming, dram_named
from tilewright.isa.machine import DEFAULT_MACHINE, SWITCHES, Machine, MemoryTiming, lanes_of_a_fetch, preset
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_error import DesignError
from tilewright.tools.user_text import read_user_text

__all__ = ["MOST_BYTES", "MOST_MHZ", "machine_of", "memory_with", "read_design", "size_of"]

MOST_BYTES = 1 << 20
"""Of a design file: a longer one is none."""

MOST_MHZ = 10_000.0
"""Of a clock."""

UNSTATED_MHZ = 100.0
"""Of DRAM that belongs to no design yet: `Design` puts it at its own clock."""

_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._,=+-]{0,79}$"
_SIZE = re.compile(r"(\d{1,12})\s*(KiB|MiB)?")
_UNITS = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20}


def size_of(value: Any) -> Any:
    """Return a number of bytes, written with its unit, as an integer; anything else unchanged."""
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else value


_Count = Annotated[StrictInt, BeforeValidator(size_of)]


class _Section(BaseModel):
    """A table of the file; a key that it does not have is an error."""

    model_config = ConfigDict(extra="forbid")



def _kind(name: str) -> Any:
    """Return the type that a parameter of the machine has in the file."""
    return str if name == "array" else StrictBool if name in SWITCHES else _Count


_PARAMETERS: dict[str, Any] = {field.name: (_kind(field.name) | None, None) for field in fields(Machine)
                               if field.name != "name"}

_MachineSection = create_model("_MachineSection", __base__=_Section, preset=(str, DEFAULT_MACHINE), **_PARAMETERS)


class _MemorySection(_Section):
    latency_cycles: StrictInt | None = None
    bytes_per_cycle: StrictInt | None = None
    dram: str | None = None
    stall_percent: StrictInt | None = None
    seed: StrictInt | None = None


class _ClockSection(_Section):
    mhz: Annotated[float, Field(gt=0, le=MOST_MHZ, strict=True)] | None = None


class _EnergySection(_Section):
    technology: str = TECHNOLOGY
    dram: str = DRAM
    gated: StrictBool = False


class _File(_Section):
    name: Annotated[str, Field(pattern=_NAME)] | None = None
    machine: _MachineSection = Field(default_factory=_MachineSection)  # type: ignore[valid-type]
    memory: _MemorySection = Field(default_factory=_MemorySection)
    clock: _ClockSection = Field(default_factory=_ClockSection)
    energy: _EnergySection = Field(default_factory=_EnergySection)


def read_design(path: Path) -> Design:
    """Read a design file.

    Raises
    ------
    DesignError
        If it cannot be read, has a key it must not have, or states a design that cannot be; the message names the
        file, the key, what was expected and what was given.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DesignError(f"Design file {str(path)!r} must have at most {MOST_BYTES} bytes, "
                              f"not {path.stat().st_size}")
        text = read_user_text(path)
        found = _File.model_validate(tomllib.loads(text))
    except OSError as error:
        raise DesignError(f"Design file {str(path)!r} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DesignError(f"Design file {str(path)!r} must be TOML: {error}") from error
    except ValidationError as error:
        raise DesignError(f"Design file {str(path)!r}: {_sentence(error)}") from error
    try:
        return _design(found, path)
    except ValueError as error:
        raise DesignError(f"Design file {str(path)!r}: {error}") from error


def _design(found: _File, path: Path) -> Design:
    section: BaseModel = found.machine
    stated = section.model_dump(exclude_none=True)
    machine = machine_of(preset(stated.pop("preset")), stated, found.name or path.stem)
    timing = memory_with(found.memory.model_dump(exclude_none=True), machine)
    technology = found.energy.technology
    if technology.endswith(".toml"):
        technology = str(path.parent / technology)
    pricing = Pricing(technology=technology, dram=found.energy.dram, gated=found.energy.gated,
                      clock_mhz=found.clock.mhz)
    pricing.load()
    return Design(machine=machine, memory=timing, pricing=pricing)


def memory_with(values: Mapping[str, Any], machine: Machine) -> MemoryTiming:
    """Return the timing of main memory with ``values`` by field, ``dram`` by name; the rest is the default.

    DRAM is at `UNSTATED_MHZ`, until it is a design's.

    Raises
    ------
    ValueError
        If there is no such memory; the message names the value, what was expected and what was given.
    """
    if "dram" not in values:
        return replace(MemoryTiming.default(machine), **values)
    if both := sorted(values.keys() & {"latency_cycles", "bytes_per_cycle"}):
        raise ValueError(f"Memory {both[0]} must not be given with dram, whose part and clock determine it, not "
                         f"{values[both[0]]!r}: leave out one of them")
    rest = {key: value for key, value in values.items() if key != "dram"}
    return DramTiming.of(dram_named(values["dram"], UNSTATED_MHZ), **rest)


def machine_of(base: Machine, changes: Mapping[str, int | str | bool], name: str) -> Machine:
    """Return ``base`` with ``changes`` by parameter, called ``name``.

    A post-processing unit is never wider than the array: if ``post_lanes`` is not stated, it is made to fit ``lanes``,
    and so are ``clusters``, also to another ``array``. Another array has as many multipliers in its lanes, if ``lanes``
    is not stated: half the lanes where a multiplication is one product, not two. ``four_patches`` brings
    ``channel_kernels`` with it, unless that is stated.

    Raises
    ------
    ValueError
        If there is no such machine, or four patches are stated where it takes one.
    """
    values = asdict(base)
    if changes.get("four_patches") is True:
        changes = {"channel_kernels": True, **changes}
    if "array" in changes and "lanes" not in changes:
        wanted, given = lanes_of_a_fetch(str(changes["array"])), lanes_of_a_fetch(base.array)
        if wanted != given:
            changes = {**changes, "lanes": max(1, values["lanes"] * wanted // given)}
    if "lanes" in changes and type(changes["lanes"]) is int and changes["lanes"] > 0:
        lanes = int(changes["lanes"])
        tiles = max(1, int(changes.get("tiles", values["tiles"])))
        values["post_lanes"] = min(values["post_lanes"], lanes)
        fetched = lanes_of_a_fetch(str(changes.get("array", values["array"])))
        values["clusters"] = max(1, min(values["clusters"], lanes // fetched), lanes // (fetched * tiles))
    made = Machine(**{**values, **changes, "name": name})
    if changes.get("four_patches") is True and not made.takes_four_patches:
        raise ValueError("Machine four_patches needs channel_kernels and, in each cluster, four lanes of array "
                         f"winograd or eight of winograd_inner, not {made.lanes_per_cluster} of {made.array!r} with "
                         f"channel_kernels={str(made.channel_kernels).lower()}")
    return made


def _sentence(error: ValidationError) -> str:
    """Return what is wrong with the first wrong key, and how many more are wrong."""
    errors = error.errors(include_url=False)
    first, more = errors[0], len({each["loc"][:2] for each in errors}) - 1
    key = ".".join(str(each) for each in first["loc"] if not str(each).startswith(("constrained", "function", "int")))
    given = first["input"]
    kind = first["type"]
    if kind == "extra_forbidden":
        said = f"key {key} is not one of {_listed(first['loc'][:-1])}{_meant(key, first['loc'])}"
    elif kind == "model_type" or kind == "model_attributes_type":
        said = f"key {key} must be a table, not {given!r}"
    elif kind == "string_pattern_mismatch":
        said = f"key {key} must be a name of at most 80 letters, digits, dots and hyphens, not {given!r}"
    else:
        said = f"key {key} must be {_EXPECTED.get(kind, first['msg'][0].lower() + first['msg'][1:])}, not {given!r}"
    return said + (f" (and {more} more)" if more > 0 else "")


_EXPECTED = {
    "int_type": "an integer, or text such as '64 KiB'", "string_type": "text", "bool_type": "true or false",
    "float_type": "a number", "float_parsing": "a number", "greater_than": "a number above 0",
    "less_than_equal": f"a number of at most {MOST_MHZ:g}",
}


def _keys(place: tuple[int | str, ...]) -> list[str]:
    """Return the keys of the table at ``place``."""
    model: Any = _File
    for key in place:
        model = model.model_fields[str(key)].annotation
    return list(model.model_fields)


def _listed(place: tuple[int | str, ...]) -> str:
    return ", ".join(_keys(place))


def _meant(key: str, place: tuple[int | str, ...]) -> str:
    return nearest(key.rpartition(".")[2], _keys(place[:-1]))
