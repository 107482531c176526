"""The commands of one step: operands computed from plan and buffer regions, as docs/datapath.md defines them.

Every function yields drafts: commands without semaphores, with the bytes they read and write.
compiler/schedule/synchronisation.py turns these into waits and signals.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layer_uses import UnitUse
from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.layout import Layout
from tilewright.compiler.plan.algorithms import PAIR_BYTES, Algorithm
from tilewright.compiler.plan.footprint import (
    WeightBlock,
    blocked_row_step,
    gains_start,
    input_bytes,
    input_plane,
    linear_row_step,
    output_plane,
    pair_words,
)
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.tiles import BLOCK_SIDE, Tile, axes, block_rows
from tilewright.compiler.schedule.accesses import Access, Draft
from tilewright.compiler.schedule.rings import Region
from tilewright.compiler.schedule.weight_image import CodedPart, Span
from tilewright.isa.extension import stage_of
from tilewright.isa.limits import BUFFER_ADDRESSES, MAX_BURST_WORDS, MAX_CHUNK_BYTES, MAX_CHUNKS, MAX_PIXEL_BYTES
from tilewright.isa.machine import TABLE_BYTES, TILE_BYTES, Machine
from tilewright.isa.rows.row_norm import RowNorm
from tilewright.isa.words.word_planes import planes_of

__all__ = [
    "ResultRuns", "behind", "chunks_of", "compute", "early", "finish", "kernel_steps", "load_input", "load_part",
    "load_planes", "load_residual", "load_weights", "normalise", "plane_of", "store",
]


def _memory_access(first: int, stop: int, layout: Layout, channels: int, *, write: bool = False) -> Access:
    """Return the access to pixels of a tensor in main memory, ``channels`` of each: exactly, where others lie between.

    Tensors without gaps need no more than the interval.
    """
    if layout.rows_whole or layout.pixel_step == 0 or layout.row_step % layout.pixel_step:
        return Access("memory", first, stop, write)
    return Access("memory", first, stop, write, layout.pixel_step, channels)


def chunks_of(size: int, unit: int, layer: Layer) -> tuple[int, int]:
    """Return (bytes, number) of the fewest equal runs that make up ``size`` bytes, each of whole units.

    Raises
    ------
    CompileError
        If there are none.
    """
    units = size // unit
    for count in range(1, min(units, MAX_CHUNKS) + 1):
        if units % count == 0 and size // count <= MAX_CHUNK_BYTES:
            return size // count, count
    raise CompileError(f"Layer {layer.name!r}: a row of {size} bytes cannot be cut into at most {MAX_CHUNKS} equal "
                       f"runs of at most {MAX_CHUNK_BYTES}; take narrower tensors")


# ---- load


def load_planes(plan: LayerPlan, tile: Tile, tensors: Mapping[str, int], region: Region) -> Iterator[Draft]:
    """Yield the commands of `load_input` for each plane of the input, of those at ``tensors``, or for zeros."""
    layer, added = plan.layer, plan.layer.words.addend
    names, size = layer.words.stored(layer.input), input_plane(tile, layer, plan.nest)
    values = [0] * len(names) if added else [layer.pad_value] if not layer.words.lower_input else [
        int(each) for each in planes_of(np.array(layer.pad_value, np.int16))]
    nothing = replace(tile, rows=replace(tile.rows, image=range(0), before=tile.rows.stored, after=0))
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        layout = plan.layouts.addend if added and name in (added.upper, added.lower) else plan.layouts.input
        own = replace(plan, layer=replace(layer, pad_value=value), layouts=replace(
            plan.layouts, input=layout or plan.layouts.input))
        part = Region(region.start + number * size, region.start + (number + 1) * size) if len(names) > 1 else region
        yield from load_input(own, tile if name else nothing, tensors[name or layer.input], part)


def load_input(plan: LayerPlan, tile: Tile, tensor: int, region: Region, first_block_row: int = 0) -> Iterator[Draft]:
    """Yield the commands that bring the input of ``tile`` from memory address ``tensor`` to ``region``.

    Where the input stays, it is a strip and goes to block row ``first_block_row`` and those behind it.
    """
    layer, blocked, layout = plan.layer, plan.nest.winograd, plan.layouts.input
    channels = layer.in_shape[0]
    rows, columns = tile.rows, tile.columns
    left, pixels, right = columns.before, len(columns.image), columns.after
    if not pixels:
        left, pixels, right = 0, columns.stored, 0
    if columns.image.step > 1 or not layout.rows_whole:
        size, count, gap = channels, pixels, columns.image.step * layout.pixel_step
    else:
        size, count = chunks_of(pixels * channels, channels if blocked else 1, layer)
        gap = size if count > 1 else 0
    row_step = blocked_row_step(tile, channels) if blocked else linear_row_step(tile, layer, plan.nest)
    yield Draft("lda", "set_row", {"chunk_bytes": size, "chunks": count, "memory_chunk_step": gap})
    yield Draft("lda", "set_step", {"memory_row_step": rows.image.step * layout.row_step, "row_step": row_step})
    # Without padding, the linear layout does not ask for the size of a pixel.
    pixel = channels if blocked or left or right else min(channels, MAX_PIXEL_BYTES)
    yield Draft("lda", "set_layout", {"chunk_step": size, "channels": pixel, "left": left, "right": right,
                                      "value": layer.pad_value})
    form = "blocked" if blocked else "linear"
    image_rows = len(rows.image) if columns.image else 0
    above = rows.before if image_rows else rows.stored
    if plan.stays:
        stop_block_row = first_block_row - (-rows.stored // BLOCK_SIDE)
        region = Region(region.start + first_block_row * row_step, region.start + stop_block_row * row_step)
    written = Access("activations", region.start, region.stop, write=True)

    def place(row: int) -> dict[str, int]:
        if blocked:
            return {"base": region.start + row // 4 * row_step, "y": row % 4}
        return {"base": region.start + row * row_step, "y": 0}

    if above:
        yield Draft("lda", f"fill_{form}", {**place(0), "rows": above}, (written,))
    if image_rows:
        first = tensor + layout.at(rows.image.start, columns.image.start)
        stop = tensor + layout.at(rows.image[-1], columns.image[-1]) + channels
        yield Draft("lda", form, {"address": first, **place(above), "rows": image_rows},
                    (_memory_access(first, stop, layout, channels), written))
        if rows.after:
            yield Draft("lda", f"fill_{form}", {**place(above + image_rows), "rows": rows.after}, (written,))


def early(drafts: Iterator[Draft]) -> Iterator[Draft]:
    """Yield ``drafts`` as loads of which a load of weights behind them tells the array."""
    yield from (draft if draft.configures else replace(draft, early=True) for draft in drafts)


def load_part(plan: LayerPlan, tile: Tile, block: WeightBlock, tensor: int, region: Region) -> Iterator[Draft]:
    """Yield the commands that load the part of an input that ``block`` covers: rows, or runs of a fully connected one.

    Of several images the parts follow each other, a row each.
    """
    layer = plan.layer
    if plan.nest.cuts != (1, 1):
        image = tile.rows.image[block.rows.start:block.rows.stop]
        yield from load_input(plan, replace(tile, rows=replace(tile.rows, image=image)), tensor, region)
        return
    channels, _, width = layer.in_shape
    row_step = layer.strides[0] * width * channels
    start = TILE_BYTES * block.runs.start
    length = min(TILE_BYTES * block.runs.stop, layer.kernel[0] * width * channels) - start
    first, rows = tensor + tile.rows.conv.start * row_step + start, len(tile.rows.conv)
    size, count = chunks_of(length, 1, layer)
    yield Draft("lda", "set_row", {"chunk_bytes": size, "chunks": count, "memory_chunk_step": size if count > 1 else 0})
    yield Draft("lda", "set_step", {"memory_row_step": row_step if rows > 1 else 0,
                                    "row_step": TILE_BYTES * len(block.runs) if rows > 1 else length})
    yield Draft("lda", "set_layout", {"chunk_step": size, "channels": 1, "left": 0, "right": 0,
                                      "value": layer.pad_value})
    yield Draft("lda", "linear", {"address": first, "base": region.start, "rows": rows, "y": 0},
                (Access("memory", first, first + (rows - 1) * row_step + length),
                 Access("activations", region.start, region.stop, write=True)))


def load_residual(plan: LayerPlan, tile: Tile, block: WeightBlock, tensor: int, region: Region) -> Iterator[Draft]:
    """Yield the commands that bring the residual of a step to where its results will be."""
    layout = plan.layouts.residual
    assert layout is not None
    runs = _result_runs(plan.layer, tile, block, layout)
    first, stop = _memory_span(tile, block, tensor, layout)
    yield Draft("lda", "set_row", {"chunk_bytes": runs.size, "chunks": runs.count,
                                   "memory_chunk_step": runs.memory_step})
    yield Draft("lda", "set_step", {"memory_row_step": layout.row_step, "row_step": runs.row_step})
    yield Draft("lda", "set_layout", {"chunk_step": runs.size, "channels": min(layout.shape[0], MAX_PIXEL_BYTES),
                                      "left": 0, "right": 0, "value": 0})
    yield Draft("lda", "residual", {"address": first, "base": region.start, "rows": len(tile.rows.out)},
                (_memory_access(first, stop, layout, block.channels),
                 Access("results", region.start, region.stop, write=True)))


def load_weights(kind: str, source: Span, address: int, base: Region, machine: Machine) -> Iterator[Draft]:
    """Yield ``ldw`` commands: bytes ``source`` of the weight image at ``address`` to the words or channels ``base``.

    ``base`` counts bytes of the destination over all clusters: 16 per word, 8 per channel.
    """
    if source.parts:
        yield from _load_coded(kind, source.parts[0], address, base, machine)
        return
    bus = machine.bus_bytes
    word, end = base.start // bus, source.start
    while end < source.stop:
        words = min(MAX_BURST_WORDS, -(-(source.stop - end) // bus))
        # How the parts share the region does not matter: every reader waits for the last.
        yield Draft("ldw", kind, {"address": address + end, "base": word, "words": words},
                    (Access("memory", address + end, address + end + words * bus),
                     Access(kind, base.start, base.stop, write=True)))
        word, end = word + words, end + words * bus


def _load_coded(kind: str, part: CodedPart, address: int, base: Region, machine: Machine) -> Iterator[Draft]:
    """Yield the commands that load coded weights to the words ``base``, in bytes as `load_weights` has it."""
    bus = machine.bus_bytes
    yield Draft("ldw", "set_coded", {"words": part.size // bus})
    yield Draft("ldw", f"coded_{kind}", {"address": address + part.start, "base": base.start // bus,
                                         "steps": part.decoded // machine.decoded_bytes},
                (Access("memory", address + part.start, address + part.start + part.size),
                 Access(kind, base.start, base.stop, write=True)))


def behind(drafts: Iterator[Draft], tensors: Sequence[tuple[int, int]]) -> Iterator[Draft]:
    """Yield ``drafts``; their first load of data waits for the writers of ``tensors``, memory [start, stop).

    Loads of weights have no semaphore for that, but come behind the load before them.
    """
    waits = tuple(Access("memory", start, stop) for start, stop in tensors)
    for draft in drafts:
        if waits and any(access.space == "memory" for access in draft.accesses):
            draft, waits = replace(draft, accesses=(*draft.accesses, *waits)), ()
        yield draft


# ---- mac


def compute(plan: LayerPlan, tile: Tile, block: WeightBlock, machine: Machine, source: Region, weights: Region | None,
            parameters: Region, table: Region | None) -> Iterator[Draft]:
    """Yield the mac commands of a step; ``weights`` in words per cluster, ``parameters`` in channels, bytes else."""
    nest, winograd = plan.nest, plan.nest.winograd
    rows, columns, groups = len(tile.rows.conv), len(tile.columns.conv), block.groups
    if winograd:
        rows, columns = -(-rows // 2), -(-columns // 2)
    elif nest.across:
        columns, groups = columns * block.channels // machine.lanes, 1
    loops = {"runs": len(block.runs), "kernel_x": len(block.columns), "kernel_y": len(block.rows)}
    if nest.four_patches:
        loops |= {"runs": machine.lanes_per_fetch, "kernel_x": len(block.runs) // machine.lanes_per_cluster}
    yield Draft("conv", "set_shape", {"tiles_x": columns, **loops})
    yield from _tile_steps(plan, tile, block, machine)
    yield Draft("conv", "set_group_step", {"group_step": nest.group_step})
    if machine.wide_words:
        words = plan.layer.words
        yield Draft("conv", "set_planes", {"plane_step": words.planes_apart * input_plane(tile, plan.layer, nest)
                                           if words.inputs > 1 else 0})
    base = source.start + block.first_group * nest.group_step
    if nest.section:
        base += block.first_group // nest.section * nest.section_step
    if not winograd:
        base += _part_offset(plan, tile, block)
    y_half, sources = 0, [source]
    if plan.stays or (plan.chip.input and winograd):
        touched, row_step = block_rows(tile), blocked_row_step(tile, plan.layer.in_shape[0])
        offset = _place(plan, BLOCK_SIDE * touched.start) // BLOCK_SIDE * row_step
        base, y_half = base + offset, tile.rows.conv.start % BLOCK_SIDE // 2
        starts = [offset] if _stride(plan, tile) == 1 else [offset, offset + _stride(plan, tile) * row_step]
        size = len(touched) // len(starts) * row_step + nest.overread
        sources = [Region(source.start + start, source.start + start + size) for start in starts]
    elif plan.chip.input:
        first = tile.rows.conv.start * axes(plan.layer)[0].stored_stride
        offset = _place(plan, first) * linear_row_step(tile, plan.layer, nest)
        base += (offset := offset + tile.columns.conv.start * plan.layer.in_shape[0])   # columns: of single pixels
        sources = [Region(source.start + offset, source.start + offset + input_bytes(tile, plan.layer, nest))]
    accesses = [Access("activations", each.start, each.stop) for each in sources]
    if weights:
        accesses += _weight_accesses(weights, machine, ninths=winograd)
    # The act behind reads the parameters; but only the array can wait for their load.
    accesses.append(Access("parameters", 8 * parameters.start, 8 * parameters.stop))
    if table:
        accesses.append(Access("table", table.start, table.stop))
    if plan.layer.unit is not None:
        yield from _own_unit(plan, tile, block, plan.layer.unit, sources[0])
    mnemonic, variant = ("pool", "sum") if nest.algorithm is Algorithm.POOL else (nest.algorithm, "run")
    if nest.by_channel:
        variant = "run_four_patches" if nest.four_patches else "run_by_channel"
    elif winograd and not nest.reuse:
        variant = "run_without_reuse"
    yield Draft(mnemonic, variant,
                {"base": base, "tiles_y": rows, "y_half": y_half, "weight_base": weights.start if weights else 0,
                 "groups": groups, "accumulate": int(block.resumes), "hold": int(block.holds)}, tuple(accesses))


def _part_offset(plan: LayerPlan, tile: Tile, block: WeightBlock) -> int:
    """Return the bytes from the start of a tile's input to the first byte that a part of the kernel reads."""
    down, right = kernel_steps(plan, tile)
    if plan.splits_input:
        return right * block.columns.start
    return TILE_BYTES * block.runs.start + down * block.rows.start + right * block.columns.start


def kernel_steps(plan: LayerPlan, tile: Tile) -> tuple[int, int]:
    """Return the bytes from a turn of the loop over kernel rows, and of that over columns, to the next."""
    layer, nest = plan.layer, plan.nest
    down = (2 if nest.paired else 1) * layer.dilations[0] * linear_row_step(tile, layer, nest)
    right = PAIR_BYTES if nest.pieces else layer.dilations[1] * layer.in_shape[0]
    if layer.words.addend is not None:
        down = input_plane(tile, layer, nest)
    if nest.fold:
        right = down if nest.fold == "rows" else right
        down = nest.kernel_x * right
    return down, right


def _place(plan: LayerPlan, row: int) -> int:
    """Return where in the buffer the rows of an input lie that begin with stored row ``row``."""
    return plan.bands.ring.place(row) if plan.bands is not None and plan.bands.ring is not None else row


def _stride(plan: LayerPlan, tile: Tile) -> int:
    """Return the block rows of the buffer from one of the tile's input to the next."""
    return plan.bands.ring.stride(block_rows(tile)) if plan.bands is not None and plan.bands.ring is not None else 1


def _own_unit(plan: LayerPlan, tile: Tile, block: WeightBlock, use: UnitUse, source: Region) -> Iterator[Draft]:
    """Yield the command that passes the pixels of a tile through the unit of the extension, in place."""
    layer, most = plan.layer, (1 << 12) - 1
    if block.resumes or block.holds or block.first_group or plan.splits_input \
            or block.channels < layer.conv_shape[0]:
        raise CompileError(f"Layer {layer.name!r}: the items of unit {use.unit.mnemonic!r} must all fit the machine's "
                           "buffers at once; take a larger machine, or leave out the extension")
    channels, row = layer.in_shape[0], linear_row_step(tile, layer, plan.nest)
    rows, pixels = tile.rows.stored, tile.columns.stored
    if row == pixels * channels:
        rows, pixels = 1, rows * pixels
    place = (Access("activations", source.start, source.stop, write=True),)
    for start in (source.start + index * row for index in range(rows)):
        for first in range(0, pixels, most):
            yield Draft("extension", "run_unit", {
                "base": start + first * channels, "items": min(most, pixels - first), "item_bytes": channels,
                "own": use.unit.operand(dict(use.fields))}, place)


def _tile_steps(plan: LayerPlan, tile: Tile, block: WeightBlock, machine: Machine) -> Iterator[Draft]:
    """Yield the strides of tiles and kernel."""
    layer, nest, channels = plan.layer, plan.nest, plan.layer.in_shape[0]
    if nest.winograd:
        step = _stride(plan, tile) * blocked_row_step(tile, channels)
        yield Draft("conv", "set_tile_step", {"x_step": TILE_BYTES * channels, "y_step": step % BUFFER_ADDRESSES})
        if nest.four_patches:
            yield Draft("conv", "set_kernel_step", {"kernel_x_step": TILE_BYTES * machine.lanes_per_cluster})
        return
    height, width = axes(layer)
    row = linear_row_step(tile, layer, nest)
    down, right = kernel_steps(plan, tile)
    x_step = machine.lanes if nest.across else width.stored_stride * channels
    apart = plan.splits_input and len(tile.rows.conv) > 1
    yield Draft("conv", "set_tile_step", {
        "x_step": x_step, "y_step": TILE_BYTES * len(block.runs) if apart else height.stored_stride * row})
    yield Draft("conv", "set_kernel_step", {
        "kernel_x_step": right if len(block.columns) > 1 else 0, "kernel_y_step": down if len(block.rows) > 1 else 0,
        "pair_words": pair_words(tile, layer, nest)})


def _weight_accesses(weights: Region, machine: Machine, *, ninths: bool) -> list[Access]:
    """Return what a mac command reads of the weight memories, in bytes over all clusters."""
    word = TILE_BYTES * machine.clusters
    found = [Access("main", weights.start * word, weights.stop * word)]
    if ninths:
        found.append(Access("ninths", weights.start // 8 * word, weights.stop // 8 * word))
    return found


# ---- post


def finish(plan: LayerPlan, tile: Tile, block: WeightBlock, machine: Machine, parameters: Region,
           table: Region | None, results: Region) -> Iterator[Draft]:
    """Yield the act commands of a step."""
    layer, scale = plan.work, plan.work.requantisation
    width, channels = len(tile.columns.conv), block.channels
    if plan.nest.across:
        width, channels = width * channels // machine.lanes, machine.lanes
    each = layer.value_bytes
    yield Draft("act", "set_output", {"width": width, "pixel_step": each * channels,
                                      "row_step": each * len(tile.columns.out) * block.channels})
    wide = layer.words.outputs > 1
    if wide:
        yield Draft("pool", "set_words", {"word_zero": scale.zero_point, "word_low": scale.low, "word_high": scale.high,
                                          "plane_words": output_plane(tile, layer, block.channels) // TILE_BYTES})
    else:
        integers = {} if scale.integers is None else scale.integers.settings
        yield Draft("act", "set_clamp", {"zero_point": scale.zero_point, "low": scale.low, "high": scale.high,
                                         **integers})
    if layer.residual:
        yield from _residual_settings(layer)
    if layer.pool:
        yield Draft("pool", "window", {
            "kernel_x": layer.pool.kernel[1], "kernel_y": layer.pool.kernel[0],
            "stride_x": layer.pool.strides[1], "stride_y": layer.pool.strides[0],
            "left": tile.columns.window_before, "top": tile.rows.window_before,
            "width": len(tile.columns.out), "rows": len(tile.rows.out)})
    accesses = [Access("parameters", 8 * parameters.start, 8 * parameters.stop),
                Access("results", results.start, results.stop, write=True)]
    if table:
        accesses.append(Access("table", table.start, table.stop))
        yield from _stage(layer, block, machine)
    mapped = table if layer.rows is None else None
    yield Draft("act", "run",
                {"base": results.start, "rows": len(tile.rows.conv), "winograd": int(plan.nest.winograd),
                 "shared": int(plan.nest.by_channel and machine.pairs_channels),
                 "parameter_base": parameters.start, "channels": channels,
                 "residual": int(layer.residual is not None), "pooled": int(layer.pool is not None),
                 "table": int(mapped is not None), "table_slot": mapped.start // TABLE_BYTES if mapped else 0,
                 "table_first": int(layer.table_first), "whole": int(layer.whole), "wide": int(wide)},
                tuple(accesses))


def normalise(plan: LayerPlan, tile: Tile, block: WeightBlock, machine: Machine, parameters: Region,
              table: Region | None, results: Region) -> Iterator[Draft]:
    """Yield the commands that make of a step's results the softmax or the normalisation of each pixel's channels."""
    rows, (channels, _, _) = plan.layer.rows, plan.layer.out_shape
    assert rows is not None
    assert table is not None
    norm, gains = isinstance(rows, RowNorm), parameters.start + gains_start(block, plan.nest, machine)
    yield Draft("act", "set_clamp", {"zero_point": rows.zero_point, "low": rows.low, "high": rows.high})
    yield Draft("act", "set_rows", {"mantissa": rows.mantissa, "shift": rows.shift})
    if isinstance(rows, RowNorm):
        yield Draft("act", "set_norm", {"extra": rows.extra, "offset": rows.offset, "parameter_base": gains,
                                        "centred": int(rows.centred), "fine": int(rows.fine)})
    yield Draft("act", "rows", {"base": results.start, "length": channels,
                                "rows": len(tile.rows.out) * len(tile.columns.out), "norm": int(norm)},
                (Access("table", table.start, table.stop),
                 *([Access("parameters", 8 * gains, 8 * (gains + channels))] if norm else ()),
                 Access("results", results.start, results.stop, write=True)))


def _stage(layer: Layer, block: WeightBlock, machine: Machine) -> Iterator[Draft]:
    """Yield the command that turns the stage of the machine's extension on or off, if it has one."""
    if layer.stage is not None:
        yield Draft("extension", "set_stage", {"enable": 1, "channel": block.first_channel,
                                               **layer.stage.stage.operands(layer.stage.settings)})
    elif stage_of(machine) is not None:
        yield Draft("extension", "set_stage", {"enable": 0, "channel": 0, "first": 0, "second": 0})


def _residual_settings(layer: Layer) -> Iterator[Draft]:
    """Yield the settings of the residual add."""
    add = layer.residual
    assert add is not None
    try:
        settings = add.settings
    except ValueError as error:
        raise CompileError(f"Layer {layer.name!r}, residual: {error}") from error
    yield Draft("act", "set_residual_scale", {"mantissa_a": settings.mantissa_a, "shift_a": settings.shift_a,
                                              "mantissa_b": settings.mantissa_b, "shift_b": settings.shift_b})
    yield Draft("act", "set_residual_offset", {
        "offset_mantissa": settings.offset_mantissa, "offset_shift": settings.offset_shift,
        "offset_negative": int(settings.offset_negative), "residual_low": settings.low,
        "residual_high": settings.high, "unsigned": int(settings.unsigned), "own_second": int(add.own_second)})


# ---- store


@dataclass(frozen=True, slots=True)
class ResultRuns:
    """Layout of a row of a step's results in the result buffer and in memory."""

    size: int
    count: int
    memory_step: int
    row_step: int


def _result_runs(layer: Layer, tile: Tile, block: WeightBlock, layout: Layout) -> ResultRuns:
    """Return the runs of a row of results: one where nothing lies between its pixels in memory, else one per pixel."""
    columns, row = len(tile.columns.out), len(tile.columns.out) * block.channels
    if columns == 1 or (layout.rows_whole and block.channels == layout.shape[0]):
        size, count = chunks_of(row, 1, layer)
        return ResultRuns(size, count, size if count > 1 else 0, row)
    return ResultRuns(block.channels, columns, layout.pixel_step, row)


def _memory_span(tile: Tile, block: WeightBlock, tensor: int, layout: Layout) -> tuple[int, int]:
    """Return the addresses from a step's first result to behind its last."""
    rows, columns = tile.rows.out, tile.columns.out
    return (tensor + layout.at(rows[0], columns[0]) + block.first_channel,
            tensor + layout.at(rows[-1], columns[-1]) + block.first_channel + block.channels)


def plane_of(plan: LayerPlan, tile: Tile, block: WeightBlock, name: str, results: Region) -> Region:
    """Return the part of a step's results that is stored to tensor ``name``: all, or a plane of words."""
    if plan.layer.words.outputs == 1:
        return results
    size = output_plane(tile, plan.layer, block.channels)
    start = results.start + (size if name == plan.layer.words.lower_output else 0)
    return Region(start, start + size)


def store(plan: LayerPlan, tile: Tile, block: WeightBlock, tensor: int, layout: Layout,
          results: Region) -> Iterator[Draft]:
    """Yield the commands that store a step's results to a tensor at memory address ``tensor``."""
    block = block.results_of(plan.layer)
    runs = _result_runs(plan.layer, tile, block, layout)
    first, stop = _memory_span(tile, block, tensor, layout)
    yield Draft("sta", "set_row", {"chunk_bytes": runs.size, "chunks": runs.count, "chunk_step": runs.size})
    yield Draft("sta", "set_source", {"row_step": runs.row_step})
    yield Draft("sta", "set_target", {"target_chunk_step": runs.memory_step, "target_row_step": layout.row_step})
    yield Draft("sta", "memory", {"address": first, "base": results.start, "rows": len(tile.rows.out)},
                (Access("results", results.start, results.stop),
                 _memory_access(first, stop, layout, block.channels, write=True)))
