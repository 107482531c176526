"""Pack weights, biases and scales into the words of docs/datapath.md, block after block as they are loaded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import ChannelFactor, Layer
from tilewright.compiler.network.memory_map import MemoryPlan
from tilewright.compiler.plan.algorithms import Algorithm, LoopNest, kernel_runs, seen_kernels
from tilewright.compiler.plan.footprint import WeightBlock, gains_start, parameter_channels
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.weights.weight_coding import coded_blocks
from tilewright.isa.machine import TABLE_BYTES, TILE_BYTES, Machine
from tilewright.isa.numerics import pack_scale
from tilewright.isa.rows.row_norm import RowNorm
from tilewright.isa.semantics.inner_product import fold_run_eta, fold_tile_eta
from tilewright.isa.words.curve_fields import CURVE_BYTES

__all__ = [
    "BlockImage", "CodedPart", "Span", "computed_spans", "pack_channels", "pack_conv", "pack_conv23", "pack_network",
    "pack_parameters", "with_computed", "written_before",
]

_Int8 = NDArray[np.int8]
_Int32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CodedPart:
    """A block of coded weights, ``size`` bytes from ``start`` of the weight image on, that decode to ``decoded`` bytes.

    ``cycles`` are those of its load, with a bus word in each.
    """

    start: int
    size: int
    decoded: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes [start, stop) of the weight image; ``parts``, one behind the other, if they are coded weights."""

    start: int
    stop: int
    parts: tuple[CodedPart, ...] = ()

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class BlockImage:
    """Places of the kinds of a block's data in the weight image; an absent one is empty.

    All blocks of a layer share its value table.
    """

    main: Span
    ninths: Span
    parameters: Span
    table: Span


def pack_network(plans: Mapping[int, LayerPlan], machine: Machine) -> tuple[bytes, dict[int, tuple[BlockImage, ...]]]:
    """Return the weight image and, by the layers' numbers, where their blocks lie: padded for `ldw`.

    Equal blocks are there once.
    """
    parts: list[bytes] = []
    known: dict[bytes, Span] = {}
    coded: dict[bytes, Span] = {}
    size = 0

    def append(data: bytes) -> Span:
        nonlocal size
        if not data:
            return Span(size, size)
        if data not in known:
            padded = data + bytes(-len(data) % machine.padded_bytes)
            parts.append(padded)
            known[data] = Span(size, size + len(padded))
            size += len(padded)
        return known[data]

    def append_coded(data: bytes) -> Span:
        """Append weights, coded if that is shorter and no slower."""
        nonlocal size
        if data in coded:
            return coded[data]
        streams = coded_blocks(data, machine) if data else ()
        if not streams:
            return append(data)
        stop, found = size, list[CodedPart]()
        for each in streams:
            found.append(CodedPart(stop, len(each.stream), each.decoded, each.cycles))
            stop += len(each.stream)
            parts.append(each.stream)
        coded[data] = Span(size, stop, tuple(found))
        size = stop
        return coded[data]

    places = {}
    for layer, plan in plans.items():
        main, ninths = _pack_layer(plan, machine)
        computed = plan.layer.factor is not None and bool(plan.layer.factor.parameters)
        by_pixel = machine.pairs_channels and not plan.nest.channel_parameters
        parameters = b"" if computed else (_pack_pixel_parameters(plan, machine) if by_pixel
                                           else pack_parameters(plan.layer, _bias(plan, machine)))
        table = append(_pack_table(plan.layer))
        layer_places = []
        for block, words, ninth in zip(plan.blocks, main, ninths, strict=True):
            chosen = b""
            if not block.resumes:
                first = 8 * block.first_channel * (machine.channel_parameters if by_pixel else 1)
                chosen = parameters[:8] * machine.lanes if plan.nest.across \
                    else parameters[first:first + 8 * parameter_channels(block, plan.nest, machine)]
                if isinstance(plan.layer.rows, RowNorm):
                    chosen = chosen.ljust(8 * gains_start(block, plan.nest, machine), b"\0")
                    chosen += np.array(plan.layer.rows.parameters, "<u8").tobytes()
            layer_places.append(BlockImage(append_coded(words), append_coded(ninth), append(chosen), table))
        places[layer] = tuple(layer_places)
    return b"".join((*parts, bytes(-size % machine.padded_bytes))), places


def with_computed(places: Mapping[int, tuple[BlockImage, ...]], plans: Mapping[int, LayerPlan], memory: MemoryPlan,
                  machine: Machine) -> dict[int, tuple[BlockImage, ...]]:
    """Return ``places`` with those of weights and parameters that are tensors: spans that may lie behind the image."""
    found = dict(places)
    for index, plan in plans.items():
        factor = plan.layer.factor
        if factor is None:
            continue
        size = TILE_BYTES * machine.lanes * plan.nest.steps
        weights = memory.tensors[factor.weights] - memory.weights
        images = []
        for block, image in zip(plan.blocks, found[index], strict=True):
            # A part of a kernel is one of a single lane group.
            first = weights + block.first_group * size + TILE_BYTES * machine.lanes * block.runs.start
            image = replace(image, main=Span(first, first + TILE_BYTES * machine.lanes * block.groups * block.steps))
            if factor.parameters and not block.resumes:
                first = memory.tensors[factor.parameters] - memory.weights + 8 * block.first_channel
                image = replace(image, parameters=Span(first, first + 8 * block.channels))
            images.append(image)
        found[index] = tuple(images)
    return found


def computed_spans(layer: Layer, images: Sequence[BlockImage], weights: int) -> list[tuple[int, int]]:
    """Return where in memory the computed weights and parameters of a layer lie; the image begins at ``weights``."""
    factor = layer.factor
    kinds = (("main", "parameters") if factor.parameters else ("main",)) if factor is not None else ()
    spans = [getattr(image, kind) for image in images for kind in kinds]
    return [(weights + span.start, weights + span.stop) for span in spans]


def written_before(product: int, layer: int, plans: Mapping[int, LayerPlan],
                   images: Mapping[int, Sequence[BlockImage]], memory: MemoryPlan) -> list[tuple[int, int]]:
    """Return the `computed_spans` of a product of vectors, if layers before ``layer`` compute them; none of others.

    Their stores are complete about when the data of the layer behind ``layer`` are, so that one load may wait for both.
    """
    if not isinstance(plans[product].layer.factor, ChannelFactor):
        return []
    spans = computed_spans(plans[product].layer, images[product], memory.weights)
    writers = [index for index, plan in plans.items() if index < product and any(
        start <= memory.tensors.get(name, -1) < stop for name in plan.layer.writes for start, stop in spans)]
    return spans if writers and max(writers) < layer else []


def _bias(plan: LayerPlan, machine: Machine) -> _Int32:
    """Return the bias of every channel, less what an array of inner products leaves in its sums.

    Sums of windows and computed factors leave nothing: they use one byte of each run. Lanes that see a channel each
    leave nothing either: they use one byte of each pair.
    """
    layer = plan.work
    bias = np.asarray(layer.bias, np.int32)
    if not machine.inner or plan.nest.algorithm is Algorithm.POOL or plan.nest.by_channel or layer.factor is not None:
        return bias
    for weights in layer.weight_parts:
        runs = kernel_runs(layer, plan.nest, machine, weights)
        bias = fold_run_eta(bias, runs.reshape(runs.shape[0] * machine.lanes, -1)[:len(bias)], layer.words.inputs)
    return bias


def _pack_layer(plan: LayerPlan, machine: Machine) -> tuple[list[bytes], list[bytes]]:
    """Return the main words and the ninth words of every block."""
    layer, nest = plan.work, plan.nest
    if nest.algorithm is Algorithm.POOL or layer.factor is not None:
        nothing = [b""] * len(plan.blocks)
        return nothing, nothing
    if nest.by_channel:
        packed = [pack_channels(layer.weight_parts[0].reshape(-1, 9), block, machine) for block in plan.blocks]
        return [main for main, _ in packed], [ninths for _, ninths in packed]
    if nest.winograd:
        parts = [seen_kernels(layer, nest, machine, weights).transpose(0, 3, 1, 2) for weights in layer.weight_parts]
        packed = [_packed([pack_conv23(each, machine) for each in _winograd_pieces(parts, nest, block, machine)])
                  for block in plan.blocks]
        return [main for main, _ in packed], [ninths for _, ninths in packed]
    runs = [kernel_runs(layer, nest, machine, weights) for weights in layer.weight_parts]
    return ([b"".join(pack_conv(each, machine) for each in _pieces(runs, nest, block)) for block in plan.blocks],
            [b""] * len(plan.blocks))


def _packed(words: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    return b"".join(main for main, _ in words), b"".join(ninths for _, ninths in words)


def _pieces(runs: list[_Int8], nest: LoopNest, block: WeightBlock) -> Iterator[_Int8]:
    """Yield the runs of a block's stretches, each with what is beyond int8 behind it."""
    for stretch in block.stretches:
        part = replace(block, first_group=block.first_group + stretch.first, groups=stretch.groups)
        yield _of_block(runs[0], nest, part)
        for rest, (rows, columns, chosen) in zip(runs[1:], stretch.rests, strict=False):
            yield _of_block(rest, nest, replace(part, rows=rows, columns=columns, runs=chosen))


def _winograd_pieces(parts: list[_Int8], nest: LoopNest, block: WeightBlock, machine: Machine) -> Iterator[_Int8]:
    """Yield the same of 3x3 kernels, (outputs, seen, 3, 3)."""
    for stretch in block.stretches:
        first = stretch.first * machine.lanes
        part = replace(block, groups=stretch.groups, first_channel=block.first_channel + first,
                       channels=min(block.channels - first, stretch.groups * machine.lanes))
        led = [np.pad(each, ((0, 0), (stretch.lead, 0), (0, 0), (0, 0))) for each in parts]
        yield _block_weights(led[0], stretch.lead + nest.runs, part, machine)
        for rest, (_, _, chosen) in zip(led[1:], stretch.rests, strict=False):
            yield _block_weights(rest[:, chosen.start:chosen.stop], len(chosen), part, machine)


def _of_block(runs: _Int8, nest: LoopNest, block: WeightBlock) -> _Int8:
    """Return of all runs, as `kernel_runs` gives them, those of ``block``; of one lane group if all have the same."""
    groups = slice(0, 1) if nest.across else slice(block.first_group, block.first_group + block.groups)
    loops = runs[groups].reshape(-1, runs.shape[1], nest.kernel_y, nest.kernel_x, *runs.shape[3:])
    chosen = loops[:, :, block.rows.start:block.rows.stop, block.columns.start:block.columns.stop,
                   block.runs.start:block.runs.stop]
    return chosen.reshape(*chosen.shape[:2], -1, *chosen.shape[4:])


def _pack_pixel_parameters(plan: LayerPlan, machine: Machine) -> bytes:
    """Return the parameters of conv23 where each pixel of a tile has a bias of its own: (lane groups, 4, lanes)."""
    layer = plan.work
    parts = [seen_kernels(layer, plan.nest, machine, each).transpose(0, 3, 1, 2) for each in layer.weight_parts]
    # Channels of one command are paired with each other.
    kernels = np.concatenate([np.pad(each, ((0, 0), (0, each.shape[1] % 2), (0, 0), (0, 0))) for each in parts], axis=1)
    biases = fold_tile_eta(np.asarray(layer.bias, np.int32), kernels, layer.words.inputs).reshape(len(kernels), -1)
    groups = -(-len(kernels) // machine.lanes)
    words = np.zeros((groups * machine.lanes, machine.channel_parameters, 8), np.int8)
    for pixel, bias in enumerate(biases.T):
        words[:len(kernels), pixel] = np.frombuffer(pack_parameters(layer, bias), np.int8).reshape(-1, 8)
    return words.reshape(groups, machine.lanes, -1, 8).transpose(0, 2, 1, 3).tobytes()


def _block_weights(kernels: _Int8, channels: int, block: WeightBlock, machine: Machine) -> _Int8:
    """Return the 3x3 kernels of ``block`` for so many ``channels``: (lane groups, lanes, channels, 9).

    They are zero for lanes without an output channel, and for channels that are not there.
    """
    chosen = kernels[block.first_channel:block.first_channel + block.channels]
    padded = np.zeros((block.groups * machine.lanes, channels, 9), np.int8)
    padded[:len(chosen), :kernels.shape[1]] = chosen.reshape(len(chosen), -1, 9)
    return padded.reshape(block.groups, machine.lanes, -1, 9)


def pack_conv23(kernels: _Int8, machine: Machine) -> tuple[bytes, bytes]:
    """Return main and ninth words of (lane groups, lanes, channels, 9) kernels, the clusters' words interleaved."""
    groups, _, channels, _ = kernels.shape
    clusters, per_cluster = machine.clusters, machine.lanes_per_cluster
    if machine.pairs_channels:
        kernels = kernels.reshape(groups, clusters, per_cluster // 2, 2, channels // 2, 2, 9)
        flat = kernels.transpose(0, 4, 3, 2, 5, 1, 6).reshape(-1, clusters, 9)  # (kernel q, cluster, 9)
    else:
        kernels = kernels.reshape(groups, clusters, per_cluster, channels, 9)
        flat = kernels.transpose(0, 3, 2, 1, 4).reshape(-1, clusters, 9)
    return _kernel_words(flat)


def pack_channels(kernels: _Int8, block: WeightBlock, machine: Machine) -> tuple[bytes, bytes]:
    """Return the same of kernels (channels, 9), one for each lane of the block's lane groups."""
    chosen = kernels[block.first_channel:block.first_channel + block.channels]
    padded = np.zeros((block.groups * machine.lanes, 9), np.int8)
    padded[:len(chosen)] = chosen
    by_cluster = padded.reshape(block.groups, machine.clusters, machine.lanes_per_cluster, 9)
    return _kernel_words(by_cluster.transpose(0, 2, 1, 3).reshape(-1, machine.clusters, 9))


def _kernel_words(flat: _Int8) -> tuple[bytes, bytes]:
    """Return main and ninth words of kernels (kernel q, cluster, 9)."""
    clusters = flat.shape[1]
    count = -(-len(flat) // TILE_BYTES) * TILE_BYTES
    padded = np.zeros((count, clusters, 9), np.int8)
    padded[:len(flat)] = flat
    main = padded[:, :, :8].reshape(count // 2, 2, clusters, 8).transpose(0, 2, 1, 3)
    ninths = padded[:, :, 8].reshape(count // TILE_BYTES, TILE_BYTES, clusters).transpose(0, 2, 1)
    return main.tobytes(), ninths.tobytes()


def pack_conv(runs: _Int8, machine: Machine) -> bytes:
    """Return the words of (lane groups, lanes, ky * kx, runs, 16), the clusters' words interleaved, a multiple of 8."""
    groups = runs.shape[0]
    clusters, per_cluster = machine.clusters, machine.lanes_per_cluster
    words = runs.reshape(groups, clusters, per_cluster, -1, TILE_BYTES).transpose(0, 3, 2, 1, 4)
    words = words.reshape(-1, clusters, TILE_BYTES)
    return words.tobytes() + bytes(-len(words) % 8 * clusters * TILE_BYTES)


def pack_parameters(layer: Layer, bias: _Int32) -> bytes:
    """Return ``bias`` and the layer's scale of every channel, 8 bytes each.

    Raises
    ------
    CompileError
        If a scale or a bias is outside what the requantiser can express.
    """
    if layer.requantisation.integers is not None:
        try:
            return layer.requantisation.integers.words(bias).astype("<u8").tobytes()
        except ValueError as error:
            raise CompileError(f"Layer {layer.name!r}: {error}") from error
    words = np.zeros((layer.conv_shape[0], 2), "<u4")
    words[:, 0] = np.asarray(bias, "<i4").view("<u4")
    for channel, scale in enumerate(layer.requantisation.scale):
        try:
            mantissa, shift = pack_scale(float(scale))
        except ValueError as error:
            raise CompileError(f"Layer {layer.name!r}, channel {channel}: {error}") from error
        words[channel, 1] = mantissa | shift << 24
    return words.tobytes()


def _pack_table(layer: Layer) -> bytes:
    """Return the value table, a byte for each int8 value from -128 on, the words of rows, or the curve of words.

    Raises
    ------
    CompileError
        If it is no int8 array of that size.
    """
    if layer.rows is not None:
        return np.array(layer.rows.table, "<u4").tobytes()
    if layer.table is None:
        return b""
    table = np.asarray(layer.table)
    size = CURVE_BYTES if layer.words.outputs > 1 else TABLE_BYTES
    if table.dtype != np.int8 or table.shape != (size,):
        raise CompileError(f"Layer {layer.name!r}: the table must be int8 of shape ({size},), "
                           f"not {table.dtype} of {table.shape}")
    return table.tobytes()
