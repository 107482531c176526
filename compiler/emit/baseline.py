"""A network as C for a core alone: the baselines for speed-ups, scalar and with SIMD.

Each layer becomes one function, which calls ``compiler/c/kernels.h`` with its dimensions as constants. Weights,
tables and tensors lie in main memory; every tensor has a place of its own, so that all of them can be compared.

With XPULP, convolutions of one group, and padding and pooling of a multiple of four channels, are those of
``compiler/c/xpulp.h``, four bytes to a word; all other work is the same C.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NewType

import numpy as np

from tilewright.compiler.emit.baseline_constants import (
    block_shape,
    channel_table,
    common_shift,
    packed_weights,
    padded_shape,
    receptive_field,
    uses_simd,
)
from tilewright.compiler.emit.c import comment_text
from tilewright.compiler.emit.c_core import call_text, core_function, shared_functions
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import (
    AnyLayer,
    ChannelFactor,
    CoreLayer,
    Layer,
    MatrixFactor,
    Network,
    Requantisation,
    Residual,
    Shape,
)
from tilewright.compiler.network.layout import Layout, layout_of
from tilewright.compiler.network.reference import residual_table
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.program import Call

__all__ = ["KERNELS", "RECORD_WORDS", "XPULP_KERNELS", "Baseline", "Offset", "emit_baseline"]

KERNELS = Path(__file__).parent.parent / "c" / "kernels.h"
XPULP_KERNELS = KERNELS.with_name("xpulp.h")
"""The headers that the C text includes: the first in any case, the second with XPULP."""

RECORD_WORDS = 2
"""Of one layer, 32 bits each: its cycles and its instructions."""

_ALIGNMENT = 16

Offset = NewType("Offset", int)
"""Bytes from the start of main memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A network in plain C and the main memory it expects. Offsets are from ``MAIN_BASE``.

    Attributes
    ----------
    source : str
        The C text.
    image : bytes
        Weights and tables, at offset 0.
    tensors : mapping of str to int
        Offset of every tensor, which lies there as `compiler.network.operands` says.
    records : int
        Offset of the layers' records, in order.
    memory_bytes : int
        Everything ends before this offset.
    """

    source: str
    image: bytes
    tensors: Mapping[str, Offset]
    records: Offset
    memory_bytes: int


class _Memory:
    """Main memory, handed out from its start: contents first, then space."""

    def __init__(self) -> None:
        self.image = bytearray()
        self.end = 0

    def put(self, content: bytes) -> Offset:
        """Return the offset at which ``content`` will lie."""
        offset = self.take(len(content))
        self.image += bytes(offset - len(self.image)) + content
        return offset

    def take(self, count: int) -> Offset:
        """Return the offset of ``count`` free bytes."""
        offset = -(-self.end // _ALIGNMENT) * _ALIGNMENT
        self.end = offset + count
        return Offset(offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Constants:
    """Where the constants of one layer lie: packed weights, ``struct channel``s, residual and value table."""

    weights: Offset
    channels: Offset
    residuals: Offset
    table: Offset

    @classmethod
    def put(cls, memory: _Memory, layer: Layer, *, xpulp: bool) -> "_Constants":
        """Put the constants of ``layer`` into ``memory``."""
        return cls(weights=memory.put(packed_weights(layer, xpulp=xpulp)),
                   channels=memory.put(channel_table(layer)),
                   residuals=memory.put(residual_table(layer.residual).tobytes() if layer.residual else b""),
                   table=memory.put(layer.table.tobytes() if layer.table is not None else b""))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scratch:
    """Space that all layers share: parts of tensors without gaps (two of them), the padded input, unpooled results."""

    gathered: Offset
    other: Offset
    padded: Offset
    pooled: Offset

    @classmethod
    def take(cls, memory: _Memory, network: Network, layers: Sequence[Layer]) -> "_Scratch":
        """Take from ``memory`` what the largest tensor of each kind needs."""
        part = max((math.prod(info.shape) for info in network.tensors.values() if info.place is not None), default=0)
        return cls(gathered=memory.take(part), other=memory.take(part),
                   padded=memory.take(max((math.prod(padded_shape(layer)) for layer in layers), default=0)),
                   pooled=memory.take(max((math.prod(layer.conv_shape) for layer in layers), default=0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where a layer finds what it needs, and how the network's tensors lie."""

    constants: _Constants
    scratch: _Scratch
    tensors: Mapping[str, Offset]
    layouts: Mapping[str, Layout]
    xpulp: bool


def emit_baseline(network: Network, *, xpulp: bool = False) -> Baseline:
    """Write ``network`` as plain C, or with the SIMD instructions of XPULP.

    Raises
    ------
    ValueError
        If a scale is outside what ``isa.numerics.pack_scale`` takes.
    """
    memory = _Memory()
    datapath = [layer for layer in network.layers if isinstance(layer, Layer)]
    constants = {layer.name: _Constants.put(memory, layer, xpulp=xpulp) for layer in datapath}
    core_constants = {name: MAIN_BASE + memory.put(np.ascontiguousarray(array).tobytes())
                      for name, array in network.constants.items()}
    image = bytes(memory.image)
    tensors = _tensor_offsets(memory, network, core_constants)
    scratch = _Scratch.take(memory, network, datapath)
    layouts = {info.name: layout_of(info) for info in network.tensors.values()}
    records = memory.take(4 * RECORD_WORDS * len(network.layers))
    addresses = core_constants | {name: MAIN_BASE + offset for name, offset in tensors.items()}
    calls = {layer.name: core_call(layer, network.tensors, network.constants, addresses)
             for layer in network.layers if isinstance(layer, CoreLayer)}
    names, functions = [], shared_functions(calls.values())
    for index, layer in enumerate(network.layers):
        names.append(_identifier(index, layer))
        if isinstance(layer, CoreLayer):
            functions += _core_functions(names[-1], layer, calls[layer.name])
        else:
            places = _Places(constants=constants[layer.name], scratch=scratch, tensors=tensors, layouts=layouts,
                             xpulp=xpulp)
            functions += ["", *_function(names[-1], layer, places)]
    integers = any(layer.requantisation.integers is not None for layer in datapath)
    return Baseline(source=_program(network, names, functions, records, xpulp=xpulp, integers=integers), image=image,
                    tensors=tensors, records=records, memory_bytes=memory.end)


def _tensor_offsets(memory: _Memory, network: Network, constants: Mapping[str, int]) -> dict[str, Offset]:
    """Return where every tensor lies, those inside others too, and those that ``constants`` has the addresses of."""
    whole = {name: Offset(constants[name] - MAIN_BASE) if name in constants else memory.take(info.bytes)
             for name, info in network.tensors.items() if info.place is None}
    return {name: whole[name] if info.place is None else Offset(whole[info.place.parent] + info.place.offset)
            for name, info in network.tensors.items()}


def _program(network: Network, names: Sequence[str], functions: Sequence[str], records: Offset, *,
             xpulp: bool, integers: bool) -> str:
    """Return the C text around ``functions``, which calls those called ``names`` and measures each."""
    title = f"{comment_text(network.name)} {'with XPULP SIMD' if xpulp else 'in plain C'}"
    lines = [
        f"/* Generated by compiler/emit/baseline.py: {title}. */",
        *(["#define INTEGERS"] if integers else []),
        *(["#define XPULP", '#include "xpulp.h"'] if xpulp else ['#include "kernels.h"']),
        *functions, "", "int main(void)", "{",
        f"    struct record *records = (struct record *)(MEMORY + {records:#x});",
        *(f"    measure({name}, records + {index});" for index, name in enumerate(names)),
        "    return 0;", "}",
    ]
    return "\n".join(lines) + "\n"


def _core_functions(name: str, layer: CoreLayer, call: Call) -> list[str]:
    """Return the kernel that computes a layer of the host core, the same as beside the coprocessor, and its call."""
    kernel = f"{name}_{call.kernel.lower()}"
    return ["", *core_function(call, kernel), "", f"/* {comment_text(layer.name)}: {call.kernel}. */",
            f"static __attribute__((noinline)) void {name}(void)", "{", f"    {call_text(call, kernel)}", "}"]


def _identifier(index: int, layer: AnyLayer) -> str:
    words = re.sub(r"[^0-9a-z]+", "_", layer.name.lower()).strip("_")[:40]
    return f"layer{index}_{words}" if words else f"layer{index}"


def _function(name: str, layer: Layer, places: _Places) -> Iterator[str]:
    shapes = dict.fromkeys((layer.in_shape, layer.conv_shape, layer.out_shape))
    text = " -> ".join("x".join(map(str, shape)) for shape in shapes)
    yield f"/* {comment_text(layer.name)}: {layer.kind} {text} (channels x height x width), {layer.macs} MACs. */"
    yield f"static __attribute__((noinline)) void {name}(void)"
    yield "{"
    for line in _body(layer, places):
        yield f"    {line}"
    yield "}"


def _body(layer: Layer, places: _Places) -> Iterator[str]:
    """Yield the calls that compute a layer.

    The kernels know only tensors without gaps: parts of others are copied before and afterwards.
    """
    source, result = places.tensors[layer.input], places.tensors[layer.output]
    if not places.layouts[layer.input].whole:
        yield _copy(source, places.layouts[layer.input], places.scratch.gathered, None)
        source = places.scratch.gathered
    elsewhere = [name for name in layer.writes if name != layer.output or not places.layouts[name].whole]
    if not places.layouts[layer.output].whole:
        result = places.scratch.gathered if places.scratch.gathered != source else places.scratch.other
    yield from _contiguous(layer, source, result, places)
    for name in elsewhere:
        yield _copy(result, None, places.tensors[name], places.layouts[name])


def _copy(source: Offset, from_layout: Layout | None, target: Offset, to_layout: Layout | None) -> str:
    """Return the call that copies a tensor; one side has no layout, and so no gaps."""
    one = from_layout or to_layout
    assert one is not None
    channels, _, width = one.shape
    steps = [(each.row_step, each.pixel_step) if each else (width * channels, channels)
             for each in (from_layout, to_layout)]
    numbers = ", ".join(str(step) for pair in steps for step in pair)
    return f"place({_at(source)}, {_at(target)}, {_shape(one.shape)}, {numbers});"


def _contiguous(layer: Layer, source: Offset, result: Offset, places: _Places) -> Iterator[str]:
    """Yield the calls that compute a layer from ``source`` to ``result``, tensors without gaps."""
    if any(layer.pads):
        top, left = layer.pads[:2]
        name, padded = "pad_simd" if places.xpulp and layer.in_shape[0] % 4 == 0 else "pad", places.scratch.padded
        yield (f"{name}({_at(source)}, {_at(padded)}, {_shape(layer.in_shape)}, {_shape(padded_shape(layer))}, "
               f"{top}, {left}, {layer.pad_value});")
        source = padded
    target = result if layer.pool is None else places.scratch.pooled
    yield from _sums(layer, source, target, places)
    count = int(np.prod(layer.conv_shape))
    mapped = [] if layer.table is None else [f"map_values({_at(target)}, {_at(places.constants.table)}, {count});"]
    added = [] if layer.residual is None else list(_residual(layer.residual, target, count, places))
    yield from (*mapped, *added) if layer.table_first else (*added, *mapped)
    if layer.pool is not None:
        (height, width), (stride_y, stride_x), pads = layer.pool.kernel, layer.pool.strides, layer.pool.pads
        window = f"{height}, {width}, {stride_y}, {stride_x}, 1, 1, {pads[0]}, {pads[1]}"
        name = "max_pool_simd" if places.xpulp and layer.out_shape[0] % 4 == 0 else "max_pool"
        yield (f"{name}({_at(target)}, {_at(result)}, {_shape(layer.conv_shape)}, {_shape(layer.out_shape)}, "
               f"(struct window){{{window}}});")


def _sums(layer: Layer, source: Offset, target: Offset, places: _Places) -> Iterator[str]:
    """Yield the call that sums and requantises."""
    channels = f"(const struct channel *)(MEMORY + {places.constants.channels:#x})"
    out, bounds = _shape(layer.conv_shape), _output(layer.requantisation)
    if isinstance(layer.factor, MatrixFactor):
        matrix = layer.factor
        row = places.layouts[matrix.tensor].pixel_step
        yield (f"multiply_matrix({_at(source)}, {layer.in_shape[0]}, {_at(places.tensors[matrix.tensor])}, {row}, "
               f"{channels}, {_at(target)}, {out}, {layer.pad_value}, {matrix.zero_point}, "
               f"{-1 if matrix.negated else 1}, {bounds});")
    elif isinstance(layer.factor, ChannelFactor):
        factor = layer.factor
        yield (f"multiply({_at(source)}, {_at(places.tensors[factor.tensor])}, {channels}, {_at(target)}, {out}, "
               f"{layer.pad_value}, {factor.zero_point}, {-1 if factor.negated else 1}, {bounds});")
    elif layer.kind == "conv":
        name = "conv_simd" if places.xpulp and uses_simd(layer) else "conv"
        yield f"{name}({_at(source)}, {_at(places.constants.weights)}, {channels}, {_at(target)}, (struct conv){{"
        for line in _conv_members(layer, xpulp=places.xpulp):
            yield f"    {line}"
        yield "});"
    elif layer.kind == "average":
        numbers = (*layer.kernel, *layer.strides, *layer.dilations, 0, 0)
        window = f"(struct window){{{', '.join(map(str, numbers))}}}"
        yield (f"average({_at(source)}, {channels}, {_at(target)}, {_shape(padded_shape(layer))}, {out}, "
               f"{window}, {bounds});")
    else:
        yield f"rescale({_at(source)}, {channels}, {_at(target)}, {out}, {bounds});"


def _conv_members(layer: Layer, *, xpulp: bool) -> Iterator[str]:
    """Yield the initialisers of a ``struct conv``."""
    channels, _, width = padded_shape(layer)
    field, (pixels, block) = receptive_field(layer), block_shape(layer, xpulp=xpulp)
    stride_y, stride_x = layer.strides
    yield f".out = {_shape(layer.conv_shape)}, .groups = {layer.groups},"
    yield (f".rows = {field.rows}, .row_step = {field.row_step}, .runs = {field.runs}, .run_step = {field.run_step}, "
           f".bytes = {field.bytes},")
    yield (f".group_step = {channels // layer.groups}, .pixel_step = {stride_x * channels}, "
           f".line_step = {stride_y * width * channels},")
    yield f".weight = {1 if layer.weights is None else layer.weights.itemsize},"
    yield f".block = {block}, .pixels = {pixels}, .to = {_output(layer.requantisation)},"


def _residual(residual: Residual, target: Offset, count: int, places: _Places) -> Iterator[str]:
    other, table = places.tensors[residual.tensor], places.constants.residuals
    if not places.layouts[residual.tensor].whole:
        # The input is no longer needed, and what the layer makes may lie in either place.
        scratch = places.scratch.other if target == places.scratch.gathered else places.scratch.gathered
        yield _copy(other, places.layouts[residual.tensor], scratch, None)
        other = scratch
    yield f"add_residual({_at(target)}, {_at(other)}, {_at(table)}, {count});"


def _at(offset: Offset) -> str:
    return f"(int8_t *)(MEMORY + {offset:#x})"


def _shape(shape: Shape) -> str:
    channels, height, width = shape
    return f"(struct shape){{{height}, {width}, {channels}}}"


def _output(parameters: Requantisation) -> str:
    shift, *kind = (common_shift(parameters) or 0,) if parameters.integers is None else parameters.integers.in_c[2:]
    numbers = shift, parameters.zero_point, parameters.low, parameters.high, *kind
    return f"(struct output){{{', '.join(map(str, numbers))}}}"
