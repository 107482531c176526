"""The algorithms that can compute a layer, and the loops of their mac commands over its input.

A layer is computed as itself or, where a lane group sees few channels, as in a depthwise convolution, at stride 1: a
Winograd tile then takes so few cycles that it pays to compute all results and drop those that the stride skips, which
max pooling over windows of one pixel does. For the same reason its kernel, if smaller, gets zeros up to 3x3.

``conv`` multiplies runs of 16 bytes. The pixels of a kernel row are one run of kernel width x channels bytes where
nothing lies between them, and so are the rows of a kernel as wide as what is stored. In a grouped convolution
the lanes of a lane group must look at the same bytes::

    lanes is a multiple of the outputs of a group    several groups side by side, zero weights between (depthwise)
    the outputs of a group are a multiple of lanes   one group after the other
    else                                             all channels, zero weights where another group's lie

A run can also be 8 bytes each of two kernel rows: *paired rows*, if what is stored is widened so that the two lie
8 (mod 16) bytes apart. Rows of more bytes are cut into pieces of 8. That takes ceil(rows / 2) ceil(bytes / 8) runs, not
rows ceil(bytes / 16): 3 instead of 5 for 5x5 on one channel, 12 instead of 14 for 7x7 on three.

A layer that computes every byte alike, as an average or a value table, need not tell channels from pixels: *across*, a
tile is ``lanes`` bytes of a stored row, whatever they are, and a row of results has as many tiles as its bytes need. So
the average of a whole image is not one tile in each of many lane groups, each waiting for its weight fetches, and three
channels do not leave a lane idle.

A command's loops over kernel rows and columns end at 63. A kernel with more taps along one axis, and one along the
other, is *folded*: both loops walk along that axis, with zero weights for surplus taps. Any other is *cut* into
rectangles, one command each, and the accumulators hold the sums between these commands.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.network.layers import Layer, MaxPooling
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.plan.tiles import LayerAxis, axes
from tilewright.isa.limits import MAX_KERNEL, MAX_PIXEL_BYTES, MAX_WINDOW_STRIDE
from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.isa.rows.row_norm import RowNorm

__all__ = [
    "PAIR_BYTES", "Algorithm", "LoopNest", "Part", "algorithms", "forms", "kernel_runs", "loop_nest", "loop_nests",
    "rests_of_weights", "seen_kernels", "spare_rows",
]

Part = tuple[range, range, range]
"""Kernel rows, kernel columns and runs of a loop nest."""

_Int8 = NDArray[np.int8]


class Algorithm(StrEnum):
    """Algorithm of a layer, by the mnemonic of its instruction."""

    WINOGRAD = "conv23"
    DOT_PRODUCTS = "conv"
    POOL = "pool"


PAIR_BYTES = TILE_BYTES // 2
"""Bytes of each of two paired rows."""


def algorithms(layer: Layer, options: Options = BEST) -> tuple[Algorithm, ...]:
    """Return the algorithms that can compute ``layer`` unchanged and that ``options`` allow."""
    if layer.kind != "conv":
        return (Algorithm.POOL,)
    winograd = options.winograd == "auto" and _fits_winograd(layer) and layer.strides == (1, 1)
    return (Algorithm.WINOGRAD, Algorithm.DOT_PRODUCTS) if winograd else (Algorithm.DOT_PRODUCTS,)


def forms(layer: Layer, options: Options = BEST) -> Iterator[tuple[Layer, Algorithm]]:
    """Yield the layers that can be computed in place of ``layer``, each with its algorithm."""
    for algorithm in algorithms(layer, options):
        yield layer, algorithm
    drops = (layer.strides != (1, 1) and max(layer.strides) <= MAX_WINDOW_STRIDE
             and layer.pool is None and layer.residual is None and len(layer.weight_parts) < 2
             and layer.words.outputs == 1)
    if layer.kind == "conv" and options.winograd == "auto" and layer.groups > 1:
        filled = _with_three_rows_and_columns(layer)
        if filled is not layer and filled.strides == (1, 1) and _fits_winograd(filled):
            yield filled, Algorithm.WINOGRAD
        if drops and _fits_winograd(filled):
            yield _at_stride_one(filled), Algorithm.WINOGRAD


def _fits_winograd(layer: Layer) -> bool:
    """Tell whether kernel and channels are those of ``conv23``, whatever the stride."""
    return layer.kernel == (3, 3) and layer.dilations == (1, 1) and layer.in_shape[0] <= MAX_PIXEL_BYTES


def _with_three_rows_and_columns(layer: Layer) -> Layer:
    """Return ``layer`` with a kernel of 3x3, zeros between and behind its own taps, if these lie within so many.

    A single row or column of results stays as it is: more padding than image would be written around it.
    """
    rows, columns = layer.span
    within = 1 < max(rows, columns) <= 3 and min(layer.conv_shape[1:]) > 1
    if layer.weights is None or not within or layer.kernel == (3, 3):
        return layer
    weights = np.zeros((*layer.weights.shape[:2], 3, 3), layer.weights.dtype)
    weights[:, :, :rows:layer.dilations[0], :columns:layer.dilations[1]] = layer.weights
    return replace(layer, kernel=(3, 3), dilations=(1, 1), weights=weights)


def _at_stride_one(layer: Layer) -> Layer:
    """Return ``layer`` at stride 1, with a pooling that keeps the pixels that its stride does not skip."""
    channels, height, width = layer.conv_shape
    rows, columns = layer.strides
    return replace(layer, strides=(1, 1), conv_shape=(channels, (height - 1) * rows + 1, (width - 1) * columns + 1),
                   pool=MaxPooling(kernel=(1, 1), strides=layer.strides, pads=(0, 0, 0, 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """The loops of one layer's mac commands.

    Attributes
    ----------
    kernel_y, kernel_x, runs : int
        Loop counts, as ``conv.set_shape`` takes them.
    seen : int
        Input channels (bytes of a pixel) that one lane group's weights cover.
    group_step : int
        Bytes from one lane group's input to the next one's, inside a command; for ``conv23`` 16 to a channel.
    section : int
        Lane groups after which the input moves on by ``section_step`` bytes, with a command of its own; 0: never.
    section_step : int
        See ``section``.
    overread : int
        Bytes that the last run reads behind the input; their weights are zero.
    paired : bool
        A run is 8 bytes each of two kernel rows; the second row of the last pair is not there if they are odd.
    pieces : bool
        Of paired rows: ``kernel_x`` counts pieces of 8 bytes of a kernel row, not pixels.
    reuse : bool
        ``conv23`` keeps the columns that neighbouring patches share.
    by_channel : bool
        Of ``conv23``, each lane sees a channel of its own, and takes the one kernel and bias that is there for it.
    four_patches : bool
        Of ``conv23`` by channel, the patches of four channels come at once.
    across : bool
        A tile is ``lanes`` bytes of a row, and a mac command has one lane group; ``group_step`` counts for its base.
    fold : str
        ``rows`` or ``columns`` if both loops walk along that axis of the kernel, ``kernel_x`` taps in each of
        ``kernel_y`` turns, else ``""``.
    cuts : (int, int)
        Ranges into which the loops over rows and over columns are cut; each pair of them is a block.
    gains : int
        Channels of the parameter buffer for gains and shifts of rows, behind a block's own.
    """

    algorithm: Algorithm
    kernel_y: int
    kernel_x: int
    runs: int
    seen: int
    group_step: int = 0
    section: int = 0
    section_step: int = 0
    overread: int = 0
    paired: bool = False
    pieces: bool = False
    reuse: bool = True
    by_channel: bool = False
    four_patches: bool = False
    across: bool = False
    fold: str = ""
    cuts: tuple[int, int] = (1, 1)
    gains: int = 0

    @property
    def steps(self) -> int:
        """Multiplier issues per tile and lane group."""
        return self.kernel_y * self.kernel_x * self.runs

    @property
    def winograd(self) -> bool:
        """Whether the mac commands are ``conv23``."""
        return self.algorithm is Algorithm.WINOGRAD

    @property
    def channel_parameters(self) -> bool:
        """Whether a channel has one bias and scale, whatever the machine."""
        return not self.winograd or self.by_channel

    @property
    def for_all_lanes(self) -> "LoopNest":
        """The same with kernels for all lanes of a lane group, of which most are zero."""
        return replace(self, by_channel=False, four_patches=False)

    @property
    def one_run(self) -> bool:
        """Whether the whole kernel is one run, so that it may be cut anywhere."""
        return self.algorithm is Algorithm.DOT_PRODUCTS and self.kernel_y == self.kernel_x == 1

    @property
    def rectangles(self) -> tuple[tuple[range, range], ...]:
        """The ranges of kernel rows and columns of each command."""
        rows, columns = (_evenly(size, count)
                         for size, count in zip((self.kernel_y, self.kernel_x), self.cuts, strict=True))
        return tuple((row, column) for row in rows for column in columns)


def loop_nest(layer: Layer, algorithm: Algorithm, machine: Machine) -> LoopNest:
    """Return the loop nest of ``layer`` by ``algorithm``."""
    return _within_loops(_unbounded_nest(layer, algorithm, machine), layer)


def _unbounded_nest(layer: Layer, algorithm: Algorithm, machine: Machine) -> LoopNest:
    """Return the loop nest as if a command's loops had no end."""
    nest = _nest_of_sums(layer, algorithm, machine)
    return replace(nest, gains=len(layer.rows.gains)) if isinstance(layer.rows, RowNorm) else nest


def _nest_of_sums(layer: Layer, algorithm: Algorithm, machine: Machine) -> LoopNest:
    """Return the loop nest of the sums alone, without post-processing."""
    channels, outputs = layer.in_shape[0], layer.conv_shape[0]
    kernel_y, kernel_x = layer.kernel
    if layer.words.addend is not None:
        # The taps are planes of the operands, and a lane takes its byte of each.
        return LoopNest(algorithm=algorithm, kernel_y=len(layer.words.addend.weights), kernel_x=1,
                        runs=machine.lane_runs, seen=machine.lanes, group_step=machine.lanes,
                        overread=machine.lane_runs * TILE_BYTES - 1)
    if algorithm is Algorithm.POOL:
        return LoopNest(algorithm=algorithm, kernel_y=kernel_y, kernel_x=kernel_x, runs=machine.lane_runs,
                        seen=machine.lanes, group_step=machine.lanes, overread=machine.lane_runs * TILE_BYTES - 1)
    if algorithm is Algorithm.WINOGRAD:
        return _winograd_nest(layer, machine)
    inputs_each, outputs_each = channels // layer.groups, outputs // layer.groups
    seen, group_step, section, section_step = channels, 0, 0, 0
    side_by_side = machine.lanes // outputs_each * inputs_each
    if layer.groups > 1 and machine.lanes % outputs_each == 0 and side_by_side < channels:
        seen = group_step = side_by_side
    elif layer.groups > 1 and outputs_each % machine.lanes == 0:
        seen = section_step = inputs_each
        section = outputs_each // machine.lanes
    height, width = axes(layer)
    if seen == channels and (layer.dilations[1] == 1 or kernel_x == 1):
        seen_row, kernel_x = kernel_x * channels, 1
        if _fills_rows(height, width):
            seen_row, kernel_y = kernel_y * seen_row, 1
    else:
        seen_row = seen
    runs = -(-seen_row // TILE_BYTES)
    return LoopNest(algorithm=algorithm, kernel_y=kernel_y, kernel_x=kernel_x, runs=runs, seen=seen,
                    group_step=group_step, section=section, section_step=section_step,
                    overread=runs * TILE_BYTES - (inputs_each if group_step else seen_row))


def _within_loops(nest: LoopNest, layer: Layer) -> LoopNest:
    """Return ``nest`` with loops that a command can count: folded, or cut."""
    rows, columns = nest.kernel_y, nest.kernel_x
    if max(rows, columns) <= MAX_KERNEL:
        return nest
    taps = rows * columns
    # Sums of windows have no weights, and so no zeros.
    turns = next((count for count in range(-(-taps // MAX_KERNEL), MAX_KERNEL + 1)
                  if nest.algorithm is not Algorithm.POOL or taps % count == 0), 0)
    if min(rows, columns) > 1 or not turns:
        return replace(nest, cuts=(-(-rows // MAX_KERNEL), -(-columns // MAX_KERNEL)))
    each = -(-taps // turns)
    folded = replace(nest, kernel_y=turns, kernel_x=each, fold="rows" if columns == 1 else "columns")
    spare = (turns * each - taps) * layer.dilations[1] * layer.in_shape[0]
    return replace(folded, overread=nest.overread + (spare if folded.fold == "columns" else 0))


def spare_rows(layer: Layer, nest: LoopNest) -> int:
    """Return the stored rows that a folded kernel reads behind those it needs; its weights there are zero."""
    return (nest.kernel_y * nest.kernel_x - layer.kernel[0]) * layer.dilations[0] if nest.fold == "rows" else 0


def _evenly(size: int, count: int) -> list[range]:
    """Return ``count`` ranges of about the same length that together are ``range(size)``."""
    bounds = [size * index // count for index in range(count + 1)]
    return [range(*pair) for pair in pairwise(bounds)]


def _winograd_nest(layer: Layer, machine: Machine) -> LoopNest:
    """Return the loop nest of ``conv23``: a run is a channel, and its patch lies 16 bytes from the next channel's.

    A command's first channel must be a multiple of 16, so a section of its own needs groups of so many channels. Where
    channels are taken in pairs, an odd one is taken with what lies behind it.
    """
    channels, outputs = layer.in_shape[0], layer.conv_shape[0]
    inputs_each, outputs_each = channels // layer.groups, outputs // layer.groups
    side_by_side = machine.lanes // outputs_each * inputs_each
    by_channel = (machine.takes_channel_kernels and inputs_each == outputs_each == 1
                  and len(layer.weight_parts) == 1)
    four = (by_channel and machine.takes_four_patches and channels % machine.block_unit == 0
            and layer.words.inputs == 1)
    if four:
        side_by_side = min(side_by_side, channels)
    if layer.groups > 1 and machine.lanes % outputs_each == 0 and (side_by_side < channels or four):
        overread = -(-outputs // machine.lanes) * side_by_side - channels + _missing(side_by_side, machine)
        return LoopNest(algorithm=Algorithm.WINOGRAD, kernel_y=1, kernel_x=1,
                        runs=side_by_side + _missing(side_by_side, machine), seen=side_by_side,
                        group_step=side_by_side * TILE_BYTES, overread=overread * TILE_BYTES,
                        by_channel=by_channel, four_patches=four)
    if layer.groups > 1 and outputs_each % machine.lanes == 0 and inputs_each % TILE_BYTES == 0:
        return LoopNest(algorithm=Algorithm.WINOGRAD, kernel_y=1, kernel_x=1, runs=inputs_each, seen=inputs_each,
                        section=outputs_each // machine.lanes, section_step=inputs_each * TILE_BYTES)
    missing = _missing(channels, machine)
    return LoopNest(algorithm=Algorithm.WINOGRAD, kernel_y=1, kernel_x=1, runs=channels + missing, seen=channels,
                    overread=missing * TILE_BYTES)


def _missing(channels: int, machine: Machine) -> int:
    """Return how many channels to add so that ``machine`` can take them."""
    return channels % 2 if machine.pairs_channels else 0


_TILES_OF_PATCH = 2


def loop_nests(layer: Layer, algorithm: Algorithm, machine: Machine) -> tuple[LoopNest, ...]:
    """Return the loop nests of ``layer`` by ``algorithm`` that are worth comparing."""
    if algorithm is Algorithm.WINOGRAD and len(layer.weight_parts) > 1 and machine.tiles < _TILES_OF_PATCH:
        return ()   # what is beyond int8 is added tile by tile, and a patch of conv23 begins at an even one
    if layer.pool is not None and not machine.max_pooling:
        return ()   # one of `forms`, at stride 1: nothing drops its pixels
    unbounded = _unbounded_nest(layer, algorithm, machine)
    plain = _within_loops(unbounded, layer)
    if algorithm is Algorithm.POOL:
        found = (plain, *_in_strips(unbounded, layer, machine))
        return (*found, *(replace(each, across=True) for each in found)) if alike(layer) else found
    if layer.words.addend is not None:
        return (plain, replace(plain, across=True))
    # Rows that are a multiple of 16 apart never lie 8 (mod 16) bytes apart.
    alone = unbounded.kernel_y == 1 or layer.dilations[0] % TILE_BYTES == 0
    if algorithm is not Algorithm.DOT_PRODUCTS or alone or not machine.paired_rows:
        return (plain,)
    paired = _pair_rows(unbounded, layer)
    counts = max(paired.kernel_y, paired.kernel_x) <= MAX_KERNEL
    return (plain, paired) if counts and paired.steps < plain.steps and paired.runs == 1 else (plain,)


def _in_strips(unbounded: LoopNest, layer: Layer, machine: Machine) -> tuple[LoopNest, ...]:
    """Return the nest of a window, the only one of an image too large for the buffer, that loads it strip by strip."""
    rows, size = unbounded.kernel_y, math.prod(layer.in_shape) // layer.images
    height, width = axes(layer)
    if (height.conv, width.conv) != (1, 1) or any(layer.pads) or size <= machine.activation_bytes:
        return ()
    strips = max(-(-rows // MAX_KERNEL), min(rows, -(-2 * size // machine.activation_bytes)))
    return (replace(unbounded, cuts=(strips, -(-unbounded.kernel_x // MAX_KERNEL))),)


def alike(layer: Layer) -> bool:
    """Tell whether a layer computes every byte of a row alike."""
    scale, integers = layer.requantisation.scale, layer.requantisation.integers
    return (layer.pool is None and layer.stage is None and (integers is None or integers.alike)
            and bool((layer.bias == layer.bias[0]).all() and (scale == scale[0]).all())
            and (layer.conv_shape[2] == 1 or axes(layer)[1].stored_stride == 1))


def _pair_rows(plain: LoopNest, layer: Layer) -> LoopNest:
    """Return ``plain`` with two kernel rows to a run; a loop over single pixels keeps its several ``runs``."""
    paired = replace(plain, kernel_y=-(-plain.kernel_y // 2), paired=True)
    in_one = plain.seen if plain.kernel_x == layer.kernel[1] else plain.seen * layer.kernel[1]
    count = -(-in_one // PAIR_BYTES)
    overread = plain.overread - plain.runs * TILE_BYTES + count * PAIR_BYTES
    if plain.kernel_x > 1:
        return replace(paired, runs=count, overread=overread)
    return replace(paired, kernel_x=count, runs=1, overread=overread, pieces=True)


def _fills_rows(height: LayerAxis, width: LayerAxis) -> bool:
    """Tell whether the kernel is as wide as the stored rows and its rows follow one another."""
    whole = width.cut(0, width.out)
    return (height.dilation == 1 or height.kernel == 1) and whole.stored == width.kernel and width.conv == 1


# ---- weights as the loops meet them


def kernel_runs(layer: Layer, nest: LoopNest, machine: Machine, weights: _Int8) -> _Int8:
    """Return weights of a layer as the runs that meet the input: (lane groups, lanes, ky * kx, runs, 16)."""
    seen = seen_kernels(layer, nest, machine, weights)                           # (outputs, kh, kw, seen)
    taps = nest.kernel_y * nest.kernel_x
    stated = {"": taps, "rows": layer.kernel[0], "columns": layer.kernel[1]}[nest.fold]
    flat = _pair_kernel_rows(seen, nest) if nest.paired else seen.reshape(len(seen), stated, -1)
    groups = -(-len(seen) // machine.lanes)
    padded = np.zeros((groups * machine.lanes, taps, nest.runs * TILE_BYTES), np.int8)
    padded[:len(flat), :flat.shape[1], :flat.shape[2]] = flat
    return padded.reshape(groups, machine.lanes, taps, nest.runs, TILE_BYTES)


@lru_cache(maxsize=256)
def rests_of_weights(layer: Layer, nest: LoopNest, machine: Machine) -> dict[int, tuple[Part, ...]]:
    """Return, for lane groups with weights beyond int8, the least parts of the nest that meet the rests.

    There is one for each of the layer's ``weight_parts`` behind the first, as far as it has some. A part of ``conv23``
    begins with a channel that is a multiple of 16, and has channels in pairs where those are.
    """
    found: dict[int, tuple[Part, ...]] = {}
    for rest in layer.weight_parts[1:] if nest.algorithm is not Algorithm.POOL else ():
        places = _places(layer, nest, machine, rest)
        for group in map(int, np.flatnonzero(places.any(axis=(1, 2, 3)))):
            rows, columns, runs = (range(int(at.min()), int(at.max()) + 1) for at in np.nonzero(places[group]))
            if nest.winograd:
                first = runs.start // TILE_BYTES * TILE_BYTES
                runs = range(first, runs.stop + (runs.stop - first) % (2 if machine.pairs_channels else 1))
            found[group] = (*found.get(group, ()), (rows, columns, runs))
    return found


def _places(layer: Layer, nest: LoopNest, machine: Machine, weights: _Int8) -> NDArray[np.bool_]:
    """Return where in the nest weights are not zero: (lane groups, kernel rows, kernel columns, runs)."""
    if not nest.winograd:
        met = kernel_runs(layer, nest, machine, weights).any(axis=(1, 4))        # (lane groups, ky * kx, runs)
        return met.reshape(-1, nest.kernel_y, nest.kernel_x, nest.runs)
    kernels = seen_kernels(layer, nest, machine, weights)                        # (outputs, 3, 3, seen)
    more = ((0, -len(kernels) % machine.lanes), (0, nest.runs - kernels.shape[3]))
    used = np.pad(kernels.any(axis=(1, 2)), more).reshape(-1, machine.lanes, 1, 1, nest.runs)
    return np.asarray(used.any(axis=1))


def _pair_kernel_rows(seen: _Int8, nest: LoopNest) -> _Int8:
    """Return kernels (outputs, kh, kw, seen) as runs of two rows, 8 bytes each: (outputs, ky * kx, 16)."""
    outputs, height = seen.shape[:2]
    rows = seen.reshape(outputs, height, 1 if nest.pieces else nest.kernel_x, -1)
    columns, size = rows.shape[2:]
    padded = np.zeros((outputs, 2 * nest.kernel_y, columns, nest.kernel_x // columns * PAIR_BYTES), np.int8)
    padded[:, :height, :, :size] = rows
    pairs = padded.reshape(outputs, nest.kernel_y, 2, nest.kernel_x, PAIR_BYTES).transpose(0, 1, 3, 2, 4)
    return pairs.reshape(outputs, nest.kernel_y * nest.kernel_x, TILE_BYTES)


def seen_kernels(layer: Layer, nest: LoopNest, machine: Machine, weights: _Int8) -> _Int8:
    """Return each output's kernel over the channels its lane group sees: (outputs, kh, kw, seen)."""
    weights = weights.transpose(0, 2, 3, 1)                                     # (outputs, kh, kw, inputs of a group)
    outputs, height, width, each = weights.shape
    if nest.seen == each:
        return weights
    group = np.arange(outputs) // (outputs // layer.groups)
    lane_group = np.arange(outputs) // machine.lanes
    step = nest.group_step // TILE_BYTES if nest.winograd else nest.group_step
    first = group * each - lane_group * step
    seen = np.zeros((outputs, height, width, nest.seen), np.int8)
    for output in range(outputs):
        seen[output, :, :, first[output]:first[output] + each] = weights[output]
    return seen
