"""The manifest of an artefact: its content, and how it is read from untrusted JSON."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from tilewright.compiler.kernels.preparation import OPERATIONS, PreparationStep
from tilewright.compiler.network.layers import AbsentChannels, ChannelScales, Place, TensorInfo, UnreadInput
from tilewright.compiler.network.operands import tensor_operand
from tilewright.compiler.network.options import MAX_BATCH, Options, Winograd
from tilewright.compiler.words.word_tensors import WORD_SHIFT
from tilewright.errors import InputError
from tilewright.isa.command_port import PORTS, PortName
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.extension import Extension, extended, extension_of
from tilewright.isa.machine import SWITCHES, Machine
from tilewright.isa.memory import MAIN_BASE, WINDOWS, AddressWindow, Permission
from tilewright.isa.program import DTYPES, MAX_RANK

__all__ = [
    "FORMAT_VERSION",
    "MAX_MEMORY_BYTES",
    "ArtefactError",
    "LayerEntry",
    "Manifest",
    "T",
    "from_json",
    "sha256",
    "to_json",
    "value",
]

FORMAT_VERSION = 16
MAX_MEMORY_BYTES = 1 << 31

T = TypeVar("T")


class ArtefactError(InputError):
    """An artefact cannot be written or read; the message is one sentence for the person who has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEntry:
    """A layer in the manifest; ``record`` is the address of its status record.

    ``algorithm`` is the instruction that computes it, or ``core``; then ``operator`` is ONNX's, and ``reason`` why the
    host core does. ``inputs`` and ``outputs`` name tensors. ``exact`` as for `compiler.network.layers.Layer`.
    ``group`` is the name of the first of those layers that are computed band by band together with it, in that one's
    function; empty if there are none.
    """

    name: str
    kind: str
    algorithm: str
    onnx_nodes: tuple[str, ...]
    macs: int
    function: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    record: int
    plan: str
    predicted_cycles: int
    reason: str = ""
    operator: str = ""
    exact: bool = True
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything in ``manifest.json`` but the list of files.

    ``tensors`` are (type, address in main memory); data lie there as `compiler.network.operands` says. ``inputs`` and
    ``outputs`` name tensors in the order of the model; ``on_chip`` those that never reach main memory; ``unread`` and
    ``defaults`` are as in `compiler.network.layers.Network`. With ``options`` it can be compiled again, to simulate
    parts. The ELF sends its commands to ``port``. ``state`` names, by input, the output that it is in the next call.
    ``opening`` is the address of the record behind what the first call alone loads; None where each call loads all.
    """

    model: str
    machine: Machine
    options: Options
    tensors: Mapping[str, tuple[TensorInfo, int]]
    inputs: tuple[str, ...]
    outputs: tuple[TensorInfo, ...]
    windows: tuple[AddressWindow, ...]
    layers: tuple[LayerEntry, ...]
    weights_address: int
    memory_bytes: int
    keeps_tensors: bool
    on_chip: tuple[str, ...] = ()
    port: PortName = "cvxif"
    unread: tuple[UnreadInput, ...] = ()
    defaults: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)
    opening: int | None = None


def to_json(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as lists, dicts, strings and numbers."""
    return {
        "model": manifest.model,
        "machine": _machine_json(manifest.machine),
        "options": asdict(manifest.options),
        "tensors": [{**_tensor_json(info), "address": address} for info, address in manifest.tensors.values()],
        "inputs": list(manifest.inputs),
        "outputs": [_tensor_json(info) for info in manifest.outputs],
        "windows": [_window_json(window) for window in manifest.windows],
        "layers": [asdict(layer) for layer in manifest.layers],
        "weights_address": manifest.weights_address,
        "memory_bytes": manifest.memory_bytes,
        "keeps_tensors": manifest.keeps_tensors,
        "on_chip": list(manifest.on_chip),
        "port": manifest.port,
        "unread": [{**asdict(each), "shape": list(each.shape)} for each in manifest.unread],
        "defaults": list(manifest.defaults),
        "state": dict(manifest.state),
        "opening": manifest.opening,
    }


def _machine_json(machine: Machine) -> dict[str, Any]:
    """Return the machine's parameters; an extension by its mnemonic and the SHA-256 of its file."""
    extension = extension_of(machine)
    found = asdict(machine)
    return found if extension is None else found | {"extension": [extension.mnemonic, extension.digest]}


def _tensor_json(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "scale": float(info.scale), "zero_point": info.zero_point,
            "unsigned": info.unsigned, "onnx_name": info.onnx_name, "onnx_dtype": info.onnx_dtype,
            "onnx_shape": None if info.onnx_shape is None else list(info.onnx_shape), "dtype": info.dtype,
            "dims": None if info.dims is None else list(info.dims),
            "absent": None if info.absent is None else _absent_json(info.absent),
            "place": None if info.place is None else asdict(info.place), "images": info.images, "words": info.words,
            "preparation": [{**asdict(step), "values": list(step.values), "shape": list(step.shape)}
                            for step in info.preparation],
            "channels": None if info.channels is None else {
                "scale": list(info.channels.scale), "offset": list(info.channels.offset),
                "shape": list(info.channels.shape)}}


def _absent_json(absent: AbsentChannels) -> dict[str, Any]:
    return {"channels": absent.channels, "kept": list(absent.kept),
            "values": None if absent.values is None else list(absent.values),
            "place": None if absent.place is None else asdict(absent.place)}


# ---- reading


def value(data: Any, key: str, kind: type[T]) -> T:
    """Return ``data[key]``, which must be of type ``kind``.

    Raises
    ------
    ArtefactError
        If it is not there or of another type.
    """
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, kind) or (kind is not bool and isinstance(found, bool)):
        raise ArtefactError(f"Manifest entry {key!r} must be {kind.__name__}, not {found!r:.60}")
    return found


def _list(data: Any, key: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    return tuple(read(each) for each in value(data, key, list))


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise ArtefactError(f"Manifest name must be a string, not {data!r:.60}")
    return data


def _optional(data: Any, key: str, kind: type[T]) -> T | None:
    return None if isinstance(data, dict) and data.get(key, 0) is None else value(data, key, kind)


def _in(what: str, number: int, low: int, high: int) -> int:
    if not low <= number <= high:
        raise ArtefactError(f"Manifest {what} must be in {low:#x}..{high:#x}, not {number:#x}")
    return number


def _dimensions(data: Any, key: str) -> tuple[int, ...]:
    sizes = value(data, key, list)
    if not all(isinstance(size, int) and not isinstance(size, bool) and 0 < size < 1 << 24 for size in sizes):
        raise ArtefactError(f"Manifest {key} must hold positive sizes, not {sizes!r:.60}")
    return tuple(sizes)


def from_json(data: Any, extension: Extension | None = None) -> Manifest:
    """Read what :func:`to_json` returns, of a machine with ``extension`` if it has one.

    Raises
    ------
    ArtefactError
        If something is missing, of the wrong type, or outside main memory.
    """
    memory_bytes = _in("memory_bytes", value(data, "memory_bytes", int), 1, MAX_MEMORY_BYTES)
    end = MAIN_BASE + memory_bytes
    tensors = dict(_list(data, "tensors", lambda each: _placed_tensor(each, end)))
    manifest = Manifest(
        model=value(data, "model", str),
        machine=_machine(value(data, "machine", dict), extension),
        options=_options(value(data, "options", dict)),
        tensors=tensors,
        inputs=_list(data, "inputs", _text),
        outputs=_list(data, "outputs", _tensor),
        windows=_list(data, "windows", lambda each: _window(each, end)),
        layers=_list(data, "layers", lambda each: _layer(each, end)),
        weights_address=_in("weights_address", value(data, "weights_address", int), MAIN_BASE, end),
        memory_bytes=memory_bytes,
        keeps_tensors=value(data, "keeps_tensors", bool),
        on_chip=_list(data, "on_chip", _text),
        port=_port(value(data, "port", str)),
        unread=_list(data, "unread", _unread_input),
        defaults=_list(data, "defaults", _text),
        state={name: _text(each) for name, each in value(data, "state", dict).items()},
        opening=None if data.get("opening", 0) is None else value(data, "opening", int),
    )
    known = [*manifest.inputs, *(info.name for info in manifest.outputs),
             *(name for layer in manifest.layers for name in (*layer.inputs, *layer.outputs))]
    if unknown := sorted(set(known) - tensors.keys() - set(manifest.on_chip)):
        raise ArtefactError(f"Manifest must describe every tensor that it names, and does not describe {unknown[0]!r}")
    if idle := [layer.name for layer in manifest.layers if not layer.outputs]:
        raise ArtefactError(f"Manifest layer {idle[0]!r} must have an output")
    if len(manifest.windows) > WINDOWS:
        raise ArtefactError(f"Manifest must have at most {WINDOWS} windows, not {len(manifest.windows)}")
    return manifest


def _unread_input(data: Any) -> UnreadInput:
    return UnreadInput(name=value(data, "name", str), dtype=value(data, "dtype", str),
                       shape=_dimensions(data, "shape"), position=_in("position", value(data, "position", int), 0,
                                                                      MAX_MEMORY_BYTES))


def _port(name: str) -> PortName:
    for port in PORTS:
        if port == name:
            return port
    raise ArtefactError(f"Manifest port must be one of {', '.join(PORTS)}, not {name!r:.40}")


def _machine(data: dict[str, Any], extension: Extension | None) -> Machine:
    stated, data = data.get("extension"), {key: each for key, each in data.items() if key != "extension"}
    given = None if extension is None else [extension.mnemonic, extension.digest]
    if stated != given:
        raise ArtefactError(f"Manifest machine must have the extension that is given (--extension), {given!r}, and has "
                            f"{stated!r:.200}")
    names = _exactly("machine", Machine, data)
    kinds: dict[str, type] = dict.fromkeys(names, int) | {"name": str, "array": str} | dict.fromkeys(SWITCHES, bool)
    parameters: dict[str, Any] = {name: value(data, name, kind) for name, kind in kinds.items()}
    try:
        return extended(Machine(**parameters), extension)
    except ValueError as error:
        raise ArtefactError(f"Manifest has a machine that cannot be built: {error}") from error


def _options(data: dict[str, Any]) -> Options:
    _exactly("options", Options, data)
    flags = {name: value(data, name, bool) for name in ("fuse_pool", "reuse", "chain", "bands", "narrow")}
    winograd = cast(Winograd, value(data, "winograd", str))
    keep = None if data["keep_weights"] is None else value(data, "keep_weights", bool)
    try:
        return Options(winograd=winograd, keep_weights=keep, batch=value(data, "batch", int), **flags)
    except ValueError as error:
        raise ArtefactError(f"Manifest has options that the compiler lacks: {error}") from error


def _exactly(what: str, kind: type, data: dict[str, Any]) -> set[str]:
    """Return the names of the fields of the dataclass ``kind``, all of which ``data`` has, and no more."""
    names = {field.name for field in fields(kind)}
    if data.keys() != names:
        raise ArtefactError(f"Manifest {what} must have the fields {', '.join(sorted(names))}, "
                            f"not {', '.join(sorted(map(str, data)))[:200]}")
    return names


def _tensor(data: Any) -> TensorInfo:
    shape = _dimensions(data, "shape")
    if len(shape) != 3:
        raise ArtefactError(f"Manifest shape must have three sizes, not {shape!r}")
    dtype, dims = value(data, "dtype", str), _optional_dimensions(data, "dims")
    if dtype not in DTYPES:
        raise ArtefactError(f"Manifest dtype must be one of {', '.join(DTYPES)}, not {dtype!r:.40}")
    if dims is not None and (math.prod(dims) != math.prod(shape) or len(dims) > MAX_RANK):
        raise ArtefactError(f"Manifest dims must be at most {MAX_RANK} with as many elements as shape {shape!r}, "
                            f"not {dims!r:.80}")
    words = value(data, "words", bool)
    if words and (dtype != "int8" or dims is not None or shape[1] % 2):
        raise ArtefactError("Manifest tensor of words of 16 bits must be int8 of two planes, one above the other")
    place = _place(data["place"]) if _optional(data, "place", dict) is not None else None
    if place is not None and dtype != "int8":
        raise ArtefactError(f"Manifest tensor in part of another must be int8, not {dtype}")
    info = TensorInfo(name=value(data, "name", str), shape=shape, scale=np.float32(value(data, "scale", float)),
                      zero_point=_in("zero_point", value(data, "zero_point", int), *((-128, 127) if not words else (
                          -WORD_SHIFT, WORD_SHIFT - 1))), words=words,
                      unsigned=value(data, "unsigned", bool), onnx_name=_optional(data, "onnx_name", str),
                      onnx_dtype=_optional(data, "onnx_dtype", str),
                      onnx_shape=_optional_dimensions(data, "onnx_shape"), dtype=dtype, dims=dims, place=place,
                      preparation=_list(data, "preparation", _step), channels=_channels(data),
                      absent=_absent(data, shape[0]),
                      images=_in("images", value(data, "images", int), 1, MAX_BATCH))
    _check_images(info)
    try:
        tensor_operand(info.of_image, 0)
    except ValueError as error:
        raise ArtefactError(f"Manifest has a tensor that cannot lie in memory: {error}") from error
    return info


def _absent(data: Any, kept_count: int) -> AbsentChannels | None:
    given = _optional(data, "absent", dict)
    if given is None:
        return None
    count, kept = _in("channels", value(given, "channels", int), 1, 1 << 24), value(given, "kept", list)
    values = _optional(given, "values", list)
    numbers = all(isinstance(each, int) and not isinstance(each, bool) for each in (*kept, *(values or ())))
    if not numbers or kept != sorted(set(kept) & set(range(count))) or len(kept) != kept_count \
            or (values is not None and (len(values) != count - len(kept)
                                        or any(not -128 <= each <= 127 for each in values))):
        raise ArtefactError(f"Manifest channels that are absent must be those beside the {kept_count} in memory, with "
                            f"a level of int8 each, not {given!r:.80}")
    place = _place(given["place"]) if _optional(given, "place", dict) is not None else None
    return AbsentChannels(channels=count, kept=tuple(kept), values=None if values is None else tuple(values),
                          place=place)


def _channels(data: Any) -> ChannelScales | None:
    given = _optional(data, "channels", dict)
    if given is None:
        return None
    scale, offset = (value(given, key, list) for key in ("scale", "offset"))
    if not all(isinstance(each, float) for each in (*scale, *offset)):
        raise ArtefactError(f"Manifest channels must have numbers as scales and offsets, not {given!r:.80}")
    return ChannelScales(tuple(scale), tuple(offset), _dimensions(given, "shape"))


def _check_images(info: TensorInfo) -> None:
    counts = info.shape[1], *(extents[0] for extents in (info.dims, info.onnx_shape) if extents)
    if any(count % info.images for count in counts) or (info.images > 1 and () in (info.dims, info.onnx_shape)):
        raise ArtefactError(f"Manifest tensor {info.name!r} of {info.images} images must have rows, and first extents, "
                            f"that are a multiple of these, not {info.shape!r}, {info.dims!r} and {info.onnx_shape!r}")


def _step(data: Any) -> PreparationStep:
    shape, values = _dimensions(data, "shape"), value(data, "values", list)
    operation = value(data, "operation", str)
    if operation not in OPERATIONS or len(values) != math.prod(shape) \
            or not all(isinstance(each, float) for each in values):
        raise ArtefactError(f"Manifest preparation must be one of {', '.join(OPERATIONS)} with numbers of the shape "
                            f"{shape!r}, not {operation!r:.40} with {values!r:.60}")
    return PreparationStep(operation, tuple(values), shape, value(data, "swapped", bool))


def _optional_dimensions(data: Any, key: str) -> tuple[int, ...] | None:
    return None if _optional(data, key, list) is None else _dimensions(data, key)


def _place(data: Any) -> Place:
    steps = {name: _in(f"place {name}", value(data, name, int), 0, MAX_MEMORY_BYTES)
             for name in ("offset", "row_step", "pixel_step", "image_step")}
    return Place(parent=value(data, "parent", str), **steps)


def _placed_tensor(data: Any, end: int) -> tuple[str, tuple[TensorInfo, int]]:
    info = _tensor(data)
    address = _in("tensor address", value(data, "address", int), MAIN_BASE, end)
    last = address + (info.images - 1) * info.image_step
    _in("end of a tensor", last + tensor_operand(info.of_image, 0).span_bytes, MAIN_BASE, end)
    if address % min(4, DTYPES[info.dtype]):
        raise ArtefactError(f"Manifest tensor {info.name!r} of {info.dtype} must be aligned, not at {address:#x}")
    return info.name, (info, address)


def _window_json(window: AddressWindow) -> dict[str, Any]:
    return {"name": window.name, "base": window.base, "limit": window.limit, "readable": window.readable,
            "writable": window.writable}


def _window(data: Any, end: int) -> AddressWindow:
    base = _in("window base", value(data, "base", int), MAIN_BASE, end)
    limit = _in("window limit", value(data, "limit", int), base + 1, end)
    permission = Permission.NONE
    for key, each in (("readable", Permission.READ), ("writable", Permission.WRITE)):
        if value(data, key, bool):
            permission |= each
    return AddressWindow(base, limit, permission, value(data, "name", str))


def _layer(data: Any, end: int) -> LayerEntry:
    record = _in("record address", value(data, "record", int), MAIN_BASE, end - 4 * RECORD_WORDS)
    names = ("name", "kind", "algorithm", "function", "plan", "reason", "operator", "group")
    texts = {name: value(data, name, str) for name in names}
    return LayerEntry(**texts, onnx_nodes=_list(data, "onnx_nodes", _text), inputs=_list(data, "inputs", _text),
                      outputs=_list(data, "outputs", _text), macs=value(data, "macs", int), record=record,
                      predicted_cycles=value(data, "predicted_cycles", int), exact=value(data, "exact", bool))


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
