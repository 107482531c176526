"""A compiled model as input of the engines: program, memory contents and map, and the layers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.compiler.compile import Compiled, manifest_of
from tilewright.compiler.emit.artefact import Artefact, ArtefactError
from tilewright.compiler.emit.manifest import LayerEntry
from tilewright.compiler.network.layers import ChannelScales, TensorInfo, UnreadInput
from tilewright.compiler.network.memory_map import root_of, tensor_bytes
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import HOST_CORE, HostName
from tilewright.isa.machine import Machine
from tilewright.isa.memory import AddressWindow
from tilewright.isa.program import Program

__all__ = ["BORDER_TYPES", "Job", "JobLayer", "job_of_artefact", "job_of_compiled"]

_STANDS_FOR = {"int8": ("float32", "float16", "int8", "uint8"), "float32": ("float32", "float16")}
"""Types in the model of what has that type in memory; others have their own in both."""

BORDER_TYPES = ("float32", "float16", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
"""Types that inputs and outputs of a model can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLayer:
    """One layer: what it is, the tensors it reads and writes, where its status record lies, and what it should take.

    ``algorithm`` is ``core`` for what the host core computes; ``operator`` is then ONNX's, and ``reason`` says why it
    does. ``exact`` tells whether ONNX Runtime's result is reproducible. Layers that are computed band by band together
    have the same ``group``, the first one's name.
    """

    name: str
    kind: str
    algorithm: str
    onnx_nodes: tuple[str, ...]
    macs: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    record: int
    predicted_cycles: int
    reason: str = ""
    operator: str = ""
    exact: bool = True
    group: str = ""

    @property
    def output(self) -> str:
        """The tensor that it computes: the first of those it stores its result to."""
        return self.outputs[0]

    @classmethod
    def of(cls, entry: LayerEntry) -> "JobLayer":
        """Return a layer from its entry in the manifest."""
        return cls(name=entry.name, kind=entry.kind, algorithm=entry.algorithm, onnx_nodes=entry.onnx_nodes,
                   macs=entry.macs, inputs=entry.inputs, outputs=entry.outputs, record=entry.record,
                   predicted_cycles=entry.predicted_cycles, reason=entry.reason,
                   operator=entry.operator, exact=entry.exact, group=entry.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything a run needs.

    Attributes
    ----------
    name : str
        Of the model.
    machine : Machine
    host : HostName
        The core beside the coprocessor on engine ``rtl``; it drives the port that ``elf`` was compiled for.
    program : Program
        The program for engine ``fast``.
    elf : Path or None
        The program for engine ``rtl``.
    images : tuple of (int, bytes or Path)
        Addresses and contents of main memory before the start, inputs aside.
    tensors : dict of str to (TensorInfo, int)
        Tensors of the network that have an address.
    inputs, outputs : tuple of TensorInfo
        As in `compiler.network.layers.Network`, like ``unread`` and ``defaults``.
    state : dict of str to str
        By input, the output that it is in the next call.
    windows : tuple of AddressWindow
    layers : tuple of JobLayer
    memory_bytes : int
        Bytes of main memory that anything uses.
    opening : int or None
        Address of the record behind what the first call alone loads; None where each call loads all.
    """

    name: str
    machine: Machine
    program: Program
    elf: Path | None
    images: tuple[tuple[int, bytes | Path], ...]
    tensors: dict[str, tuple[TensorInfo, int]]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    windows: tuple[AddressWindow, ...]
    layers: tuple[JobLayer, ...]
    memory_bytes: int
    host: HostName = HOST_CORE
    unread: tuple[UnreadInput, ...] = ()
    defaults: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)
    opening: int | None = None

    @property
    def batch(self) -> int:
        """Images that a run computes."""
        return max((info.images for info in self.outputs), default=1)

    @property
    def lasting(self) -> list[str]:
        """Tensors that are whole when the program has ended: outputs, and those that share no byte with another.

        A tensor shares its bytes with its parts, which are as whole as it is.
        """
        spans = sorted((address, address + tensor_bytes(info), name) for name, (info, address) in self.tensors.items()
                       if info.place is None)
        shared = set()
        end, holder = 0, ""
        for start, stop, name in spans:
            if start < end:
                shared |= {name, holder}
            if stop > end:
                end, holder = stop, name
        outputs = {info.name for info in self.outputs}
        roots = {root_of(self.tensors[name][0]) for name in outputs}
        return [name for name, (info, _) in self.tensors.items() if root_of(info) not in shared - roots]


def job_of_compiled(compiled: Compiled, name: str) -> Job:
    """Return the result of the back end as a job for engine ``fast``, without an ELF."""
    layers = tuple(map(JobLayer.of, manifest_of(compiled).layers))
    return Job(name=name, machine=compiled.machine, program=compiled.program, elf=None, images=compiled.images,
               tensors=dict(compiled.tensors), inputs=compiled.network.inputs, outputs=compiled.network.outputs,
               windows=compiled.windows, layers=layers, memory_bytes=compiled.memory_bytes,
               unread=compiled.network.unread, defaults=compiled.network.defaults, state=compiled.network.state,
               opening=compiled.memory.opening if compiled.program.opening else None)


def job_of_artefact(artefact: Artefact) -> Job:
    """Return the job in the folder of a compiled model.

    Raises
    ------
    ArtefactError
        If its manifest contradicts itself.
    """
    manifest = artefact.manifest
    inputs = tuple(manifest.tensors[name][0] for name in manifest.inputs)
    for tensor in (*inputs, *manifest.outputs):
        _check_border(tensor)
    for each in manifest.unread:
        if each.dtype not in BORDER_TYPES:
            raise ArtefactError(f"Manifest input {each.name!r} must be one of {', '.join(BORDER_TYPES)}, not "
                                f"{each.dtype!r:.40}")
    layers = tuple(map(JobLayer.of, manifest.layers))
    return Job(name=manifest.model, machine=manifest.machine, program=artefact.program, elf=artefact.elf,
               images=artefact.images, tensors=dict(manifest.tensors), inputs=inputs, outputs=manifest.outputs,
               windows=manifest.windows, layers=layers, memory_bytes=manifest.memory_bytes,
               host=next(host for host, port in PORT_OF.items() if port == manifest.port), unread=manifest.unread,
               defaults=manifest.defaults, state=manifest.state, opening=manifest.opening)


def _check_border(tensor: TensorInfo) -> None:
    """Raise :exc:`ArtefactError` unless a tensor can stand for an input or output of the model."""
    if tensor.onnx_name is None or tensor.onnx_dtype not in BORDER_TYPES or tensor.onnx_shape is None:
        raise ArtefactError(f"Manifest tensor {tensor.name!r} must have name, type ({', '.join(BORDER_TYPES)}) and "
                            f"shape of an input or output of the model, not {tensor.onnx_name!r}, "
                            f"{tensor.onnx_dtype!r} and {tensor.onnx_shape!r}")
    if (1 + tensor.words) * math.prod(tensor.onnx_shape) != math.prod(tensor.shape):    # Words are two planes of bytes.
        raise ArtefactError(f"Manifest tensor {tensor.name!r} must have as many elements in the model as in memory, "
                            f"not shapes {tensor.onnx_shape!r} and {tensor.shape!r}")
    if tensor.channels is not None:
        _check_channels(tensor, tensor.channels)
        return
    allowed = _STANDS_FOR.get(tensor.dtype, (tensor.dtype,))
    if tensor.onnx_dtype not in allowed:
        raise ArtefactError(f"Manifest tensor {tensor.name!r} of {tensor.dtype} must stand for one of "
                            f"{', '.join(allowed)}, not for {tensor.onnx_dtype}")


def _check_channels(tensor: TensorInfo, channels: ChannelScales) -> None:
    """Raise :exc:`ArtefactError` unless sums with scales by channel can stand for floats."""
    shape, own, count = tensor.onnx_shape or (), channels.shape, math.prod(channels.shape)
    fits = len(own) == len(shape) and all(each in (1, whole) for each, whole in zip(own, shape, strict=True))
    if tensor.dtype != "int32" or tensor.onnx_dtype not in ("float32", "float16") or not fits \
            or len(channels.scale) != count or len(channels.offset) not in (0, count):
        raise ArtefactError(f"Manifest tensor {tensor.name!r} with scales by channel must be int32 for float32, and "
                            f"have those of {own!r} for {shape!r}, not {tensor.dtype} for {tensor.onnx_dtype} with "
                            f"{len(channels.scale)} and {len(channels.offset)}")
