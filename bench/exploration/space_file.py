"""Space files: the values that an exploration may choose from, in TOML.

::

    name = "ecp5-85k"
    target = "ecp5-85k"                     # whose area is predicted, and on which the front is synthesised
    objectives = ["cycles", "energy", "area"]
    limits = ["mult18<=156", "lut4<=80000"]

    [networks]                              # weights; networks named on the command line take their place
    mlperf-resnet8 = 2.0
    mlperf-kws = 1.0

    [machine]                               # a value, a list, or powers of two from min to max
    preset = "base"                         # gives what is not stated here
    lanes = { min = 1, max = 16 }
    lanes_per_cluster = [1, 2, 4]           # instead of clusters
    activation_bytes = { min = "16 KiB", max = "256 KiB" }
    queue_depth = 16

    [memory]
    latency_cycles = [20, 60]

    [clock]
    mhz = 80

    [energy]                                # as in a design file
    technology = "generic45"
"""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from tilewright.bench.exploration.space import LANES_PER_CLUSTER, Space, Value
from tilewright.energy.pricing import TECHNOLOGY, Pricing
from tilewright.energy.technology_text import DRAM
from tilewright.errors import InputError
from tilewright.isa.dram.parts import PARTS
from tilewright.isa.machine import ARRAYS, DEFAULT_MACHINE, LIMITS, Machine, lanes_of_a_fetch, preset
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_file import MOST_BYTES, MOST_MHZ, size_of
from tilewright.tools.user_text import read_user_text

__all__ = ["DEFAULT_SPACE", "SpaceError", "default_space", "read_space"]

DEFAULT_SPACE = "default_space.toml"
"""The space that is taken where none is given; beside this module."""

_MOST_VALUES = 64


class SpaceError(InputError):
    """A space file cannot be used; the message names the key, the given value and the allowed ones."""


def _values(value: Any) -> Any:
    """Return the values that a key of the file stands for, as a tuple.

    Raises
    ------
    ValueError
        If it stands for none.
    """
    if isinstance(value, Mapping):
        if value.keys() != {"min", "max"}:
            raise ValueError(f"a table with min and max, not with {', '.join(map(str, value)) or 'nothing'}")
        low, high = size_of(value["min"]), size_of(value["max"])
        if not all(type(each) is int and each > 0 and each & (each - 1) == 0 for each in (low, high)) or low > high:
            raise ValueError("powers of two with min up to max")
        return tuple(1 << power for power in range(low.bit_length() - 1, high.bit_length()))
    values = tuple(map(size_of, value if isinstance(value, list) else [value]))
    if not 1 <= len(values) <= _MOST_VALUES or len(set(map(repr, values))) < len(values):
        raise ValueError(f"from 1 to {_MOST_VALUES} values, each once")
    return values


_Values = Annotated[tuple[Value, ...], BeforeValidator(_values)]


class _SpaceSection(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _section(name: str, keys: Mapping[str, Any]) -> Any:
    axes: dict[str, Any] = dict.fromkeys(keys, (_Values | None, None))
    return create_model(name, __base__=_SpaceSection, **axes)


_TYPES: dict[str, type] = {field.name: type(getattr(Machine(), field.name)) for field in fields(Machine)
                           if field.name != "name"}
"""Of a machine's parameters."""

_MOST_PER_CLUSTER = LIMITS["tiles"][1] * max(map(lanes_of_a_fetch, ARRAYS))

_MachineAxes = create_model("_MachineAxes", __base__=_section("_Sizes", {**_TYPES, LANES_PER_CLUSTER: int}),
                            preset=(str, DEFAULT_MACHINE))
_MemoryAxes = _section("_MemoryAxes", {"latency_cycles": int, "bytes_per_cycle": int, "dram": str})
_ClockAxes = _section("_ClockAxes", {"mhz": float})


class _PricesSection(_SpaceSection):
    technology: str = TECHNOLOGY
    dram: str = DRAM
    gated: bool = False


class _SpaceFile(_SpaceSection):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w .+-]{0,79}$")] | None = None
    target: str = ""
    objectives: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    networks: dict[str, Annotated[float, Field(gt=0, le=1e9)]] = Field(default_factory=dict)
    machine: _MachineAxes = Field(default_factory=_MachineAxes)  # type: ignore[valid-type]
    memory: _MemoryAxes = Field(default_factory=_MemoryAxes)  # type: ignore[valid-type]
    clock: _ClockAxes = Field(default_factory=_ClockAxes)  # type: ignore[valid-type]
    energy: _PricesSection = Field(default_factory=_PricesSection)


def default_space() -> Space:
    """Return the space that is taken where none is given."""
    return read_space(Path(str(files(__package__).joinpath(DEFAULT_SPACE))))


def read_space(path: Path) -> Space:
    """Read a space file.

    Raises
    ------
    SpaceError
        If it cannot be read, or has a key or a value that it must not have.
    """
    where = f"Space file {str(path)!r}"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SpaceError(f"it must have at most {MOST_BYTES} bytes, not {path.stat().st_size}")
        found = _SpaceFile.model_validate(tomllib.loads(read_user_text(path)))
        return _space(found, path)
    except OSError as error:
        raise SpaceError(f"{where} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SpaceError(f"{where} must be TOML: {error}") from error
    except ValidationError as error:
        raise SpaceError(f"{where}: {_first(error)}") from error
    except InputError as error:
        raise SpaceError(f"{where}: {error}") from error
    except ValueError as error:
        raise SpaceError(f"{where}: {error}") from error


def _first(error: ValidationError) -> str:
    first, *more = error.errors(include_url=False)
    key = ".".join(str(each) for each in first["loc"] if not str(each).startswith(("tuple", "function")))
    kind, given = first["type"], first["input"]
    if kind == "extra_forbidden":
        return f"key {key} is not one that a space has; {_allowed(first['loc'])}"
    expected = str(first.get("ctx", {}).get("error", "")) if kind == "value_error" else first["msg"].lower()
    return f"key {key} must be {expected.removeprefix('input should be ')}, not {given!r}" + (
        f" (and {len(more)} more)" if more else "")


def _allowed(place: tuple[int | str, ...]) -> str:
    model: Any = _SpaceFile
    for key in place[:-1]:
        model = model.model_fields[str(key)].annotation
    return f"those there are {', '.join(model.model_fields)}"


class _Part(NamedTuple):
    """Of a section: axes with several values, and values that do not vary."""

    axes: dict[str, tuple[Value, ...]]
    fixed: dict[str, Value]


def _part(section: BaseModel) -> _Part:
    stated = {key: getattr(section, key) for key in type(section).model_fields if key != "preset"}
    given = {key: values for key, values in stated.items() if values is not None}
    return _Part({key: values for key, values in given.items() if len(values) > 1},
                 {key: values[0] for key, values in given.items() if len(values) == 1})


def _space(found: _SpaceFile, path: Path) -> Space:
    section: Any = found.machine
    start = preset(section.preset)
    machine, memory, clock = _part(section), _part(found.memory), _part(found.clock)
    for key, values in {**machine.axes, **{key: (value,) for key, value in machine.fixed.items()}}.items():
        _require(key, values)
    if LANES_PER_CLUSTER in {**machine.axes, **machine.fixed} and "clusters" in {**machine.axes, **machine.fixed}:
        raise SpaceError(f"keys machine.clusters and machine.{LANES_PER_CLUSTER} say the same: state one of them")
    _require_memory({**memory.axes, **{key: (value,) for key, value in memory.fixed.items()}})
    axes = {**machine.axes, **memory.axes, **clock.axes}
    fixed = {**machine.fixed, **memory.fixed}
    if "lanes" in {**axes, **fixed} and not {LANES_PER_CLUSTER, "clusters"} & {**axes, **fixed}.keys():
        fixed[LANES_PER_CLUSTER] = start.lanes_per_cluster
    for mhz in (*clock.axes.get("mhz", ()), *clock.fixed.values()):
        if not isinstance(mhz, int | float) or not 0 < mhz <= MOST_MHZ:
            raise SpaceError(f"key clock.mhz must be above 0 and at most {MOST_MHZ:g}, not {mhz!r}")
    technology = found.energy.technology
    pricing = Pricing(technology=str(path.parent / technology) if technology.endswith(".toml") else technology,
                      dram=found.energy.dram, gated=found.energy.gated,
                      clock_mhz=float(clock.fixed["mhz"]) if clock.fixed else None)
    pricing.load()
    if not axes:
        raise SpaceError("a space must have a parameter with more than one value")
    return Space(name=found.name or path.stem, base=Design(machine=start, pricing=pricing), axes=axes,
                 fixed=fixed, networks=dict(found.networks), objectives=found.objectives, limits=found.limits,
                 target=found.target)


def _require_memory(stated: Mapping[str, tuple[Value, ...]]) -> None:
    """Refuse values that no main memory has."""
    parts = stated.get("dram", ())
    if unknown := [each for each in parts if each not in PARTS]:
        raise SpaceError(f"key memory.dram must be of {', '.join(PARTS)}, not {unknown[0]!r}")
    if parts and len(stated) > 1:
        raise SpaceError(f"key memory.{min(stated.keys() - {'dram'})} must not be given beside memory.dram, whose part "
                         f"and clock say it: leave out one of them")


def _require(key: str, values: tuple[Value, ...]) -> None:
    """Refuse values that no machine has.

    Raises
    ------
    SpaceError
        If there is one.
    """
    kind = _TYPES.get(key, int)
    low, high = LIMITS.get(key, (1, _MOST_PER_CLUSTER) if key == LANES_PER_CLUSTER else (0, 0))
    for value in values:
        if type(value) is not kind:
            expected = {bool: "true or false", int: "an integer", str: "text"}[kind]
            raise SpaceError(f"key machine.{key} must be {expected}, not {value!r}")
        if isinstance(value, int) and kind is int and (not low <= value <= high or value & (value - 1)):
            raise SpaceError(f"key machine.{key} must be a power of two in {low}..{high}, not {value!r}")
