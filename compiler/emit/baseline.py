"""A network as C for a core alone: the baselines that speed-ups are measured against, scalar and with SIMD.

Each layer becomes one function, which calls ``compiler/c/kernels.h`` with its dimensions as constants. Weights,
tables and tensors lie in main memory; every tensor has a place of its own, so that all of them can be compared.

With XPULP, convolutions of one group, and padding and pooling of a multiple of four channels, are those of
``compiler/c/xpulp.h``, four bytes to a word; all other work is the same C.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.compiler.emit.c import comment_text
from tilewright.compiler.emit.c_core import call_text, core_function, shared_functions
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Layer, Network, Requantize, Residual, Shape
from tilewright.compiler.network.layout import Layout, layout_of
from tilewright.compiler.network.reference import residual_table
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.numerics import MANTISSA_BITS, pack_scale
from tilewright.isa.program import Call

KERNELS = Path(__file__).parent.parent / "c" / "kernels.h"
XPULP_KERNELS = KERNELS.with_name("xpulp.h")
"""The headers that the C text includes: the first in any case, the second with XPULP."""

RECORD_WORDS = 2
"""Of one layer, 32 bits each: its cycles and its instructions."""

ALIGNMENT = 16

SPARE_BITS = 31 - MANTISSA_BITS
"""By how much a scale's mantissa can be shifted to the left in 31 bits."""


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
    tensors: Mapping[str, int]
    records: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Receptive:
    """The receptive field of an output pixel: ``rows`` times ``runs`` runs of ``bytes`` contiguous bytes."""

    rows: int
    row_step: int
    runs: int
    run_step: int
    bytes: int


class _Memory:
    """Main memory, handed out from its start: contents first, then space."""

    def __init__(self) -> None:
        self.image = bytearray()
        self.end = 0

    def put(self, content: bytes) -> int:
        """Return the offset at which ``content`` will lie."""
        offset = self.take(len(content))
        self.image += bytes(offset - len(self.image)) + content
        return offset

    def take(self, count: int) -> int:
        """Return the offset of ``count`` free bytes."""
        offset = -(-self.end // ALIGNMENT) * ALIGNMENT
        self.end = offset + count
        return offset


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where a layer finds what it needs: offsets."""

    weights: int
    channels: int
    residuals: int
    table: int
    tensors: Mapping[str, int]
    layouts: Mapping[str, Layout]
    padded: int
    pooled: int
    gathered: int
    other: int
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
    contents = {layer.name: (memory.put(packed_weights(layer, xpulp=xpulp)), memory.put(channel_table(layer)),
                             memory.put(residual_table(layer.residual).tobytes() if layer.residual else b""),
                             memory.put(layer.table.tobytes() if layer.table is not None else b""))
                for layer in datapath}
    constants = {name: MAIN_BASE + memory.put(np.ascontiguousarray(array).tobytes())
                 for name, array in network.constants.items()}
    image = bytes(memory.image)
    tensors = {name: memory.take(info.bytes) for name, info in network.tensors.items() if info.place is None}
    tensors = {name: tensors[name] if info.place is None else tensors[info.place.parent] + info.place.offset
               for name, info in network.tensors.items()}
    parts = [info for info in network.tensors.values() if info.place is not None]
    gathered, other = (memory.take(max((math.prod(info.shape) for info in parts), default=0)) for _ in range(2))
    layouts = {info.name: layout_of(info) for info in network.tensors.values()}
    padded = memory.take(max((int(np.prod(padded_shape(layer))) for layer in datapath), default=0))
    pooled = memory.take(max((int(np.prod(layer.conv_shape)) for layer in datapath), default=0))
    records = memory.take(4 * RECORD_WORDS * len(network.layers))
    addresses = constants | {name: MAIN_BASE + offset for name, offset in tensors.items()}
    calls = {layer.name: core_call(layer, network.tensors, network.constants, addresses)
             for layer in network.layers if isinstance(layer, CoreLayer)}
    names, functions = [], shared_functions(calls.values())
    for index, layer in enumerate(network.layers):
        names.append(_identifier(index, layer))
        if isinstance(layer, CoreLayer):
            functions += _core_functions(names[-1], layer, calls[layer.name])
            continue
        weights, channels, residuals, table = contents[layer.name]
        places = _Places(weights=weights, channels=channels, residuals=residuals, table=table,
                         tensors=tensors, layouts=layouts, padded=padded, pooled=pooled, gathered=gathered,
                         other=other, xpulp=xpulp)
        functions += ["", *_function(names[-1], layer, places)]
    title = f"{comment_text(network.name)} {'with XPULP SIMD' if xpulp else 'in plain C'}"
    lines = [
        f"/* Generated by compiler/emit/baseline.py: {title}. */",
        *(["#define XPULP", '#include "xpulp.h"'] if xpulp else ['#include "kernels.h"']),
        *functions, "", "int main(void)", "{",
        f"    struct record *records = (struct record *)(MEMORY + {records:#x});",
        *(f"    measure({name}, records + {index});" for index, name in enumerate(names)),
        "    return 0;", "}",
    ]
    return Baseline(source="\n".join(lines) + "\n", image=image, tensors=tensors, records=records,
                    memory_bytes=memory.end)


def _core_functions(name: str, layer: CoreLayer, call: Call) -> list[str]:
    """Return the kernel that computes a layer of the host core, the same as beside the coprocessor, and its call."""
    kernel = f"{name}_{call.kernel.lower()}"
    return ["", *core_function(call, kernel), "", f"/* {comment_text(layer.name)}: {call.kernel}. */",
            f"static __attribute__((noinline)) void {name}(void)", "{", f"    {call_text(call, kernel)}", "}"]


def padded_shape(layer: Layer) -> Shape:
    """Return the shape of a layer's input with its padding."""
    channels, height, width = layer.in_shape
    top, left, bottom, right = layer.pads
    return channels, top + height + bottom, left + width + right


def receptive_field(layer: Layer) -> Receptive:
    """Return how a convolution reads its padded input: in the longest runs there are.

    Without dilation a kernel row is one run; where it is as wide as the input too, all rows together are.
    """
    channels, _, width = padded_shape(layer)
    (kernel_y, kernel_x), (dilation_y, dilation_x) = layer.kernel, layer.dilations
    line = width * channels
    if layer.groups > 1 or dilation_x > 1:
        return Receptive(kernel_y, dilation_y * line, kernel_x, dilation_x * channels, channels // layer.groups)
    if kernel_x == width and dilation_y == 1:
        return Receptive(1, 0, 1, 0, kernel_y * line)
    return Receptive(kernel_y, dilation_y * line, 1, 0, kernel_x * channels)


def uses_simd(layer: Layer) -> bool:
    """Return whether XPULP computes a layer's sums four products at a time: convolutions of one group."""
    return layer.kind == "conv" and layer.groups == 1


def block_shape(layer: Layer, *, xpulp: bool = False) -> tuple[int, int]:
    """Return how many neighbouring pixels and output channels are computed at a time.

    Their sums, one activation per pixel and one weight per channel must fit into 31 registers, with pointers and
    a counter. The shapes are the fastest of those tried on the simulated cores.
    """
    outputs, _, width = layer.conv_shape
    outputs //= layer.groups
    if width == 1:
        return 1, min(outputs, 8)
    if xpulp and uses_simd(layer):
        return min(width, 4), min(outputs, 4)
    return 3 if width % 3 == 0 else 2, min(outputs, 4)


def packed_weights(layer: Layer, *, xpulp: bool = False) -> bytes:
    """Return a layer's weights in the order in which a convolution uses them.

    Blocks of output channels in order; in each, for every byte of the receptive field, one weight per channel. With
    SIMD, for every word of it, and zeros where a run ends within a word.
    """
    if layer.weights is None:
        return b""
    outputs, size = layer.weights.shape[0], 1
    terms = layer.weights.transpose(0, 2, 3, 1).reshape(outputs, -1)  # (O, kernel height · kernel width · C / groups)
    if xpulp and uses_simd(layer):
        run, size = receptive_field(layer).bytes, 4
        terms = np.pad(terms.reshape(outputs, -1, run), ((0, 0), (0, 0), (0, -run % size))).reshape(outputs, -1)
    per_group, block = outputs // layer.groups, block_shape(layer, xpulp=xpulp)[1]
    blocks = (terms[first + start:first + min(start + block, per_group)]
              for first in range(0, outputs, per_group) for start in range(0, per_group, block))
    return b"".join(each.reshape(len(each), -1, size).swapaxes(0, 1).tobytes() for each in blocks)


def common_shift(parameters: Requantize) -> int | None:
    """Return the shift that all of a layer's scales have as ``mantissa * 2**-shift`` with 31 bits for the mantissa.

    None if the largest scale is so much larger than the smallest that 31 bits do not hold both mantissas.
    """
    shifts = [pack_scale(float(scale))[1] for scale in parameters.scale]
    return min(shifts) + SPARE_BITS if max(shifts) - min(shifts) <= SPARE_BITS else None


def channel_table(layer: Layer) -> bytes:
    """Return a layer's ``struct channel`` for each output channel: bias, mantissa and shift."""
    table = np.empty((len(layer.bias), 3), "<u4")
    table[:, 0] = layer.bias.astype(np.int32).view(np.uint32)
    common = common_shift(layer.requantize)
    for row, scale in zip(table, layer.requantize.scale, strict=True):
        mantissa, shift = pack_scale(float(scale))
        wanted = common or shift + SPARE_BITS
        row[1:] = mantissa << wanted - shift, wanted
    return table.tobytes()


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
        yield _copy(source, places.layouts[layer.input], places.gathered, None)
        source = places.gathered
    elsewhere = [name for name in layer.writes if name != layer.output or not places.layouts[name].whole]
    if not places.layouts[layer.output].whole:
        result = places.gathered if places.gathered != source else places.other
    yield from _contiguous(layer, source, result, places)
    for name in elsewhere:
        yield _copy(result, None, places.tensors[name], places.layouts[name])


def _copy(source: int, from_layout: Layout | None, target: int, to_layout: Layout | None) -> str:
    """Return the call that copies a tensor; one side has no layout, and so no gaps."""
    one = from_layout or to_layout
    assert one is not None
    channels, _, width = one.shape
    steps = [(each.row_step, each.pixel_step) if each else (width * channels, channels)
             for each in (from_layout, to_layout)]
    numbers = ", ".join(str(step) for pair in steps for step in pair)
    return f"place({_at(source)}, {_at(target)}, {_shape(one.shape)}, {numbers});"


def _contiguous(layer: Layer, source: int, result: int, places: _Places) -> Iterator[str]:
    """Yield the calls that compute a layer from ``source`` to ``result``, tensors without gaps."""
    if any(layer.pads):
        top, left = layer.pads[:2]
        name = "pad_simd" if places.xpulp and layer.in_shape[0] % 4 == 0 else "pad"
        yield (f"{name}({_at(source)}, {_at(places.padded)}, {_shape(layer.in_shape)}, {_shape(padded_shape(layer))}, "
               f"{top}, {left}, {layer.pad_value});")
        source = places.padded
    target = result if layer.pool is None else places.pooled
    yield from _sums(layer, source, target, places)
    if layer.residual is not None:
        yield from _residual(layer.residual, target, int(np.prod(layer.conv_shape)), places)
    if layer.table is not None:
        yield f"map_values({_at(target)}, {_at(places.table)}, {int(np.prod(layer.conv_shape))});"
    if layer.pool is not None:
        (height, width), (stride_y, stride_x), pads = layer.pool.kernel, layer.pool.strides, layer.pool.pads
        window = f"{height}, {width}, {stride_y}, {stride_x}, 1, 1, {pads[0]}, {pads[1]}"
        name = "max_pool_simd" if places.xpulp and layer.out_shape[0] % 4 == 0 else "max_pool"
        yield (f"{name}({_at(target)}, {_at(result)}, {_shape(layer.conv_shape)}, {_shape(layer.out_shape)}, "
               f"(struct window){{{window}}});")


def _sums(layer: Layer, source: int, target: int, places: _Places) -> Iterator[str]:
    """Yield the call that sums and requantises."""
    channels = f"(const struct channel *)(MEMORY + {places.channels:#x})"
    out, bounds = _shape(layer.conv_shape), _output(layer.requantize)
    if layer.kind == "conv":
        name = "conv_simd" if places.xpulp and uses_simd(layer) else "conv"
        yield f"{name}({_at(source)}, {_at(places.weights)}, {channels}, {_at(target)}, (struct conv){{"
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
    yield f".block = {block}, .pixels = {pixels}, .to = {_output(layer.requantize)},"


def _residual(residual: Residual, target: int, count: int, places: _Places) -> Iterator[str]:
    other, table = places.tensors[residual.tensor], places.residuals
    if not places.layouts[residual.tensor].whole:
        # The input is no longer needed, and what the layer makes may lie in either place.
        scratch = places.other if target == places.gathered else places.gathered
        yield _copy(other, places.layouts[residual.tensor], scratch, None)
        other = scratch
    yield f"add_residual({_at(target)}, {_at(other)}, {_at(table)}, {count});"


def _at(offset: int) -> str:
    return f"(int8_t *)(MEMORY + {offset:#x})"


def _shape(shape: Shape) -> str:
    channels, height, width = shape
    return f"(struct shape){{{height}, {width}, {channels}}}"


def _output(parameters: Requantize) -> str:
    numbers = common_shift(parameters) or 0, parameters.zero_point, parameters.low, parameters.high
    return f"(struct output){{{', '.join(map(str, numbers))}}}"
