"""A user's own instruction, from one file, and a machine that has it; docs/extensions.md is the contract.

The file makes one `PostStage` or `BufferUnit` and calls it ``EXTENSION``. The instruction of a stage, funct3 7 of
custom-0, turns it on and sets its fields; ``act`` commands with ``table`` then pass their values through it instead of
a value table, and the 256 bytes of their table slot are its parameters, those of each channel one after the other. That
of a unit passes items of the activation buffer through it, between the load and the array.
"""

import hashlib
import importlib.util
import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

from tilewright.errors import InputError
from tilewright.isa.assembler import pack, unpack
from tilewright.isa.encoding import (
    EXTENSION,
    EXTENSION_FIELD_BITS,
    KNOWN,
    UNIT_FIELD_BITS,
    Field,
    Instruction,
    Variant,
)
from tilewright.isa.machine import TABLE_BYTES, Machine

__all__ = [
    "ENTRY_POINTS", "MAX_STAGE_LATENCY", "MAX_UNIT_LATENCY", "OPAQUE", "BufferUnit", "ExtendedMachine", "Extension",
    "ExtensionError", "PostStage", "StageInForce", "StageVector", "extended", "extension_of", "load_extension",
    "stage_of", "unit_of",
]

ENTRY_POINTS = "tilewright.extensions"
"""Group of entry points by which installed packages offer extensions; each names a module."""

MAX_STAGE_LATENCY = 2
"""Cycles that a stage's component may take: with the register behind it, those of a value table."""

MAX_UNIT_LATENCY = 255
"""Cycles that a unit's component may take from the last word of an item to its result."""

OPAQUE = ("first", "second", "own")
"""Operands of the table that stand for the extension's own fields."""

_PARAMETER_BYTES = (1, 2, 4, 8)


class ExtensionError(InputError):
    """A file holds no extension that can be used."""


class Extension:
    """Addition of a file to a machine: a `PostStage` or `BufferUnit`; equal if mnemonic and content of the file are.

    Attributes
    ----------
    mnemonic, effect, operators, fields
        As given; ``fields`` are those of rs1 and those of rs2.
    latency : int
        The component's.
    path, digest
        The file, and the SHA-256 of its content; empty as long as it is none's.
    """

    KIND: ClassVar[str]
    VARIANT: ClassVar[str]

    def __init__(self, mnemonic: str, effect: str, operators: tuple[str, ...], component: Callable[..., Any],
                 fields: tuple[tuple[Field, ...], tuple[Field, ...]]) -> None:
        self.mnemonic, self.effect, self.operators, self.component = mnemonic, effect, operators, component
        self.latency: int = getattr(component, "LATENCY", -1)
        self.fields = fields
        self.functions: dict[str, Callable[..., Any]] = {}
        self.path, self.digest = Path(), ""

    def _check(self, bits: tuple[int, int], reserved: set[str], most_latency: int) -> None:
        name = f"{self.KIND} {self.mnemonic!r}"
        if not isinstance(self.mnemonic, str) or not self.mnemonic.isidentifier() or keyword.iskeyword(self.mnemonic) \
                or self.mnemonic != self.mnemonic.lower() or not self.mnemonic.isascii():
            raise ExtensionError(f"{name} must have a mnemonic of lower-case letters, digits and underscores")
        if self.mnemonic in KNOWN:
            raise ExtensionError(f"{name} must have a mnemonic of its own, not one of {', '.join(KNOWN)}")
        if type(self.latency) is not int or self.latency not in range(most_latency + 1):
            raise ExtensionError(f"{name} must have a component with a LATENCY of 0..{most_latency}, "
                                 f"not {self.latency!r}")
        for register, own, most in zip(("rs1", "rs2"), self.fields, bits, strict=True):
            if (width := sum(each.width for each in own)) > most:
                raise ExtensionError(f"{name} must have fields of at most {most} bits in {register}, not {width}")
        names = [each.name for own in self.fields for each in own]
        if len(set(names)) != len(names) or reserved & set(names):
            raise ExtensionError(f"{name} must have fields of different names, none of them "
                                 f"{' or '.join(sorted(reserved))}, not {', '.join(names)}")
        if not self.operators:
            raise ExtensionError(f"{name} must name at least one ONNX operator")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.mnemonic!r}, {self.digest!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extension) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __deepcopy__(self, memo: object) -> "Extension":
        return self

    def __reduce__(self) -> tuple[Callable[[Path], "Extension"], tuple[Path]]:
        return load_extension, (self.path,)

    @property
    def instruction(self) -> Instruction:
        """The row of the table, with the extension's own fields."""
        given = EXTENSION.variant(self.VARIANT)
        own = Variant(given.name, given.code, given.unit, given.effect,
                      tuple(each for each in given.rs1 if each.name not in OPAQUE) + self.fields[0],
                      tuple(each for each in given.rs2 if each.name not in OPAQUE) + self.fields[1], given.flags)
        return Instruction(self.mnemonic, EXTENSION.funct3, self.effect, (own,))

    def named(self, operands: Mapping[str, int]) -> dict[str, int]:
        """Return ``operands`` of the table by the names of ``instruction``."""
        found = {name: value for name, value in operands.items() if name not in OPAQUE}
        for name, own in zip(OPAQUE, (self.fields[0], self.fields[1], self.fields[1]), strict=True):
            if name in operands:
                found |= unpack(own, operands[name])
        return found

    def called(self, name: str, *arguments: Any) -> Any:
        """Return the result of the file's function ``name``; :exc:`ExtensionError` if it raises anything."""
        try:
            return self.functions[name](*arguments)
        except Exception as error:  # whatever a user's file raises
            raise ExtensionError(f"Extension {self.path}: {name} fails: {type(error).__name__}: {error}") from error

    def values(self, found: Any) -> dict[str, int]:
        """Return field values that ``fit`` has returned; :exc:`ExtensionError` if they are none of this instruction."""
        known = {each.name: each.range for own in self.fields for each in own}
        if not isinstance(found, Mapping) or found.keys() != known.keys() \
                or any(int(value) not in known[name] for name, value in found.items()):
            raise ExtensionError(f"Extension {self.path}: fit must return a value of each of the fields "
                                 f"{', '.join(known) or '(there are none)'} that fits it, not {found!r:.200}")
        return {name: int(value) for name, value in found.items()}

    def computed(self, shape: tuple[int, ...], *arguments: Any) -> Any:
        """Return the result of the file's ``compute``, if it is int8 of ``shape``."""
        found = self.called("compute", *arguments)
        if getattr(found, "shape", None) != shape or str(found.dtype) != "int8":
            raise ExtensionError(f"Extension {self.path}: compute must return int8 of shape {shape}, "
                                 f"not {getattr(found, 'dtype', type(found).__name__)} of "
                                 f"{getattr(found, 'shape', 'no shape')}")
        return found


class PostStage(Extension):
    """A stage on the post-processing stream: vectors of int8 in and out, one per cycle, parameters per channel.

    Parameters
    ----------
    mnemonic : str
        Name of the instruction: lower-case letters, digits and underscores.
    effect : str
        One line for the manual.
    operators : tuple of str
        ONNX operators that the compiler tries to give to the stage, where they stand between DequantizeLinear and
        QuantizeLinear, with constants that differ by channel at most.
    parameter_bytes : int
        1, 2, 4 or 8 bytes per channel. A layer has at most 256 / ``parameter_bytes`` channels.
    fields : tuple of two tuples of Field
        Those of the instruction in rs1 (19 bits), and in rs2 (32 bits).
    fit : callable
        ``fit(tables, zero_in, zero_out)``: int8 of shape (channels, 256), what becomes of -128 .. 127 in each channel,
        and the zero points of input and output; returns (field values by name, uint8 of shape (channels,
        ``parameter_bytes``)), or None if the stage cannot compute that.
    compute : callable
        ``compute(values, parameters, settings)``: int8 of shape (..., channels), uint8 of shape (channels,
        ``parameter_bytes``), field values; returns int8 of the shape of ``values``.
    component : callable
        ``component(lanes)`` returns the Amaranth component; see docs/extensions.md for its members. Its attribute
        ``LATENCY`` counts the cycles from ``values`` to ``o``: 0 .. ``MAX_STAGE_LATENCY``.

    Raises
    ------
    ExtensionError
        If the parts do not fit together.
    """

    KIND, VARIANT = "Stage", "set_stage"

    def __init__(self, *, mnemonic: str, effect: str, operators: tuple[str, ...], parameter_bytes: int,
                 fit: Callable[[Any, int, int], tuple[Mapping[str, int], Any] | None],
                 compute: Callable[[Any, Any, Mapping[str, int]], Any], component: Callable[[int], Any],
                 fields: tuple[tuple[Field, ...], tuple[Field, ...]] = ((), ())) -> None:
        super().__init__(mnemonic, effect, operators, component, fields)
        self.parameter_bytes = parameter_bytes
        self.functions = {"fit": fit, "compute": compute}
        self.first, self.second = fields
        if parameter_bytes not in _PARAMETER_BYTES:
            raise ExtensionError(f"Stage {mnemonic!r} must have parameter_bytes of 1, 2, 4 or 8, "
                                 f"not {parameter_bytes!r}")
        self._check(EXTENSION_FIELD_BITS, {"enable", "channel"}, MAX_STAGE_LATENCY)

    @property
    def channels(self) -> int:
        """Number of channels whose parameters a table slot holds."""
        return TABLE_BYTES // self.parameter_bytes

    def operands(self, settings: Mapping[str, int]) -> dict[str, int]:
        """Return the operands ``first`` and ``second`` that hold ``settings``.

        Raises
        ------
        EncodingError
            If a value does not fit its field.
        """
        return {"first": pack(self.first, settings), "second": pack(self.second, settings)}

    def settings(self, operands: Mapping[str, int]) -> dict[str, int]:
        """Return the values of the stage's fields in ``operands``."""
        return unpack(self.first, operands["first"]) | unpack(self.second, operands["second"])

    def parameters(self, slot: Any) -> Any:
        """Return the 256 bytes of a table slot as uint8 of shape (``channels``, ``parameter_bytes``)."""
        return slot.view("uint8").reshape(self.channels, self.parameter_bytes)

    def compute(self, values: Any, parameters: Any, settings: Mapping[str, int]) -> Any:
        """Return the stage's result for ``values``, (..., channels), as its file computes it.

        Raises
        ------
        ExtensionError
            If the file's function returns something else, or raises.
        """
        return self.computed(values.shape, values, parameters, settings)


class BufferUnit(Extension):
    """A unit on the activation buffer: reads items of bytes, and writes its result over the first bytes of each.

    An item is what the channels of a pixel are: ``conv`` behind it, which the compiler adds, takes the results on.

    Parameters
    ----------
    mnemonic, effect
        As of `PostStage`.
    operators : tuple of str
        ONNX operators of one tensor of int8 (1, channels, height, width) that the compiler tries to give to the unit.
    result_bytes : int
        1 .. 4 bytes that each item becomes.
    fit : callable
        ``fit(attributes, channels)``: attributes of the ONNX node and the bytes of an item; returns field values by
        name, or None if the unit cannot compute that. The result must then be what ONNX's operator gives, (1,
        ``result_bytes``, height, width) or without the axis of one; the compiler tries it on random tensors.
    compute : callable
        ``compute(items, settings)``: int8 of shape (items, bytes), field values; returns int8 of shape (items,
        ``result_bytes``).
    component : callable
        ``component()`` returns the Amaranth component; see docs/extensions.md for its members. Its attribute
        ``LATENCY`` counts the cycles from an item's last word to its result: 0 .. ``MAX_UNIT_LATENCY``.
    fields : tuple of Field
        20 bits of the instruction's rs2.

    Raises
    ------
    ExtensionError
        If the parts do not fit together.
    """

    KIND, VARIANT = "Unit", "run_unit"

    def __init__(self, *, mnemonic: str, effect: str, operators: tuple[str, ...], result_bytes: int,
                 fit: Callable[[Mapping[str, Any], int], Mapping[str, int] | None],
                 compute: Callable[[Any, Mapping[str, int]], Any], component: Callable[[], Any],
                 fields: tuple[Field, ...] = ()) -> None:
        super().__init__(mnemonic, effect, operators, component, ((), fields))
        self.result_bytes = result_bytes
        self.functions = {"fit": fit, "compute": compute}
        if type(result_bytes) is not int or not 1 <= result_bytes <= 4:
            raise ExtensionError(f"Unit {mnemonic!r} must have result_bytes of 1..4, not {result_bytes!r}")
        self._check((0, UNIT_FIELD_BITS), {"base", "items", "item_bytes"}, MAX_UNIT_LATENCY)

    def operand(self, settings: Mapping[str, int]) -> int:
        """Return the operand ``own`` that holds ``settings``; :exc:`EncodingError` if a value does not fit."""
        return pack(self.fields[1], settings)

    def settings(self, own: int) -> dict[str, int]:
        """Return the values of the unit's fields in the operand ``own``."""
        return unpack(self.fields[1], own)

    def compute(self, items: Any, settings: Mapping[str, int]) -> Any:
        """Return the unit's result for ``items``, int8 (items, bytes), as its file computes it.

        Raises
        ------
        ExtensionError
            If the file's function returns something else, or raises.
        """
        return self.computed((len(items), self.result_bytes), items, settings)


@dataclass(frozen=True, slots=True)
class StageInForce:
    """A stage that is on, as its instruction has set it: its fields, and the channel at which commands begin."""

    stage: PostStage
    settings: Mapping[str, int]
    channel: int

    def compute(self, values: Any, slot: Any) -> Any:
        """Return the result for ``values`` (rows, columns, channels) with the 256 bytes of a table slot."""
        rows = self.stage.parameters(slot)[self.channel:self.channel + values.shape[-1]]
        if len(rows) != values.shape[-1]:
            raise ExtensionError(f"Stage {self.stage.mnemonic!r} holds parameters of {self.stage.channels} channels, "
                                 f"and a command asks for {self.channel + values.shape[-1]}")
        return self.stage.compute(values, rows, self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedMachine(Machine):
    """A machine with an instruction of a user's own."""

    extension: Extension

    def __post_init__(self) -> None:
        Machine(**{each.name: getattr(self, each.name) for each in fields(Machine)})
        if isinstance(self.extension, PostStage) and not self.value_tables:
            raise ExtensionError(f"Machine {self.name} must have value_tables for the stage "
                                 f"{self.extension.mnemonic!r}, whose parameters lie in their slots")


@dataclass(frozen=True, slots=True)
class StageVector:
    """A vector for a stage on its own: idle cycles before it, table slot, index of its channels, its values."""

    gap: int
    slot: int
    index: int
    values: tuple[int, ...]


def extended(machine: Machine, extension: Extension | None) -> Machine:
    """Return ``machine`` with ``extension``, or unchanged without one."""
    if extension is None:
        return machine
    own = {each.name: getattr(machine, each.name) for each in fields(Machine)}
    return ExtendedMachine(**own, extension=extension)


def extension_of(machine: Machine) -> Extension | None:
    """Return the extension of ``machine``, if it has one."""
    return machine.extension if isinstance(machine, ExtendedMachine) else None


def stage_of(machine: Machine) -> PostStage | None:
    """Return the extension of ``machine``, if it is a stage."""
    return found if isinstance(found := extension_of(machine), PostStage) else None


def unit_of(machine: Machine) -> BufferUnit | None:
    """Return the extension of ``machine``, if it is a unit."""
    return found if isinstance(found := extension_of(machine), BufferUnit) else None


def _file_of(path: Path) -> Path:
    """Return the file of an extension: of that name, or of a package's entry point ``tilewright.extensions``."""
    if path.suffix == ".py" or path.exists() or path.name != str(path):
        return path
    known = {each.name: each for each in entry_points(group=ENTRY_POINTS)}
    if path.name not in known:
        raise ExtensionError(f"Extension must be a Python file (.py) or one of the entry points {ENTRY_POINTS}, "
                             f"{', '.join(sorted(known)) or 'of which there are none'}, not {str(path)!r}")
    spec = importlib.util.find_spec(known[path.name].module)
    if spec is None or spec.origin is None:
        raise ExtensionError(f"Extension {path.name!r} must be a module with a file, as its entry point says: "
                             f"{known[path.name].value!r}")
    return Path(spec.origin)


def load_extension(path: Path | str) -> Extension:
    """Execute a file and return its ``EXTENSION``.

    Parameters
    ----------
    path : Path or str
        The file, or the name of an entry point ``tilewright.extensions``, which names a module.

    Raises
    ------
    ExtensionError
        If there is no such file, it fails, or holds no extension; the message names the file.
    """
    path = _file_of(Path(path)).resolve()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ExtensionError(f"Extension {path} cannot be read: {error.strerror or error}") from error
    digest = hashlib.sha256(source).hexdigest()
    spec = importlib.util.spec_from_file_location(f"tilewright_extension_{digest[:16]}", path)
    if spec is None or spec.loader is None:
        raise ExtensionError(f"Extension {path} must be a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ExtensionError as error:
        raise ExtensionError(f"Extension {path}: {error}") from error
    except Exception as error:  # whatever a user's file raises
        raise ExtensionError(f"Extension {path} fails when it is executed: {type(error).__name__}: {error}") from error
    found = getattr(module, "EXTENSION", None)
    if not isinstance(found, Extension):
        raise ExtensionError(f"Extension {path} must define EXTENSION, a PostStage or BufferUnit of "
                             f"tilewright.isa.extension, not {'nothing' if found is None else type(found).__name__}")
    found.path, found.digest = path, digest
    return found
