"""The commands of a step some of whose weights are beyond int8: their rests are added, a few tiles at a time.

The array holds the sums of as many tiles of one lane group as it has accumulators. So a lane group with such weights is
computed in turns of so many: the products of its int8 weights are held, those of what is beyond are added, by a command
that meets the least part of the kernel that has any, and the results are written where those of the whole step lie.
The other lane groups are computed as always.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.compiler.plan.algorithms import LoopNest, Part
from tilewright.compiler.plan.footprint import Stretch, WeightBlock
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.tiles import Tile
from tilewright.compiler.schedule.accesses import Draft
from tilewright.compiler.schedule.step_commands import kernel_steps
from tilewright.isa.limits import BUFFER_ADDRESSES
from tilewright.isa.machine import TILE_BYTES, Machine

__all__ = ["in_stretches"]


def in_stretches(plan: LayerPlan, tile: Tile, block: WeightBlock, machine: Machine, drafts: Sequence[Draft],
                 behind: Sequence[Draft]) -> Iterator[Draft]:
    """Yield the mac commands ``drafts`` and the act commands ``behind`` of a step, stretch by stretch of its block.

    The last of each runs, and those before it are settings. There is nothing ``behind`` a part of a kernel.
    """
    nest, words = plan.nest, 0
    for stretch in block.stretches:
        sizes = stretch.words(block.steps, nest, machine)
        mac = _of_stretch(drafts, stretch, nest, words)
        act = _act_of_stretch(behind, stretch, plan, block, machine)
        words += sum(sizes)
        if not behind or not stretch.rests:
            yield from _added_up(plan, tile, block, stretch, mac, sizes)
            yield from act
            continue
        backwards = False
        for rows, columns in _turns(drafts, plan, machine):
            written = _act_of_turn(act, rows, columns, plan)
            if _writes(written):
                turn = list(_added_up(plan, tile, block, stretch, _of_turn(mac, rows, columns, nest), sizes))
                yield from _backwards(turn) if backwards else turn
                yield from written
                backwards = not backwards


def _added_up(plan: LayerPlan, tile: Tile, block: WeightBlock, stretch: Stretch, drafts: Sequence[Draft],
              sizes: tuple[int, ...]) -> Iterator[Draft]:
    """Yield the commands that add up the products of a stretch: the main ones, and those of the rests."""
    hold, last = drafts[-1].operands["hold"], len(stretch.rests)
    yield from _with(drafts, hold=1 if last else hold)
    for number, rest in enumerate(stretch.rests, 1):
        added = _rest(plan, tile, block, rest, drafts, sum(sizes[:number]))
        yield from _with(added, hold=1 if number < last else hold)


def _backwards(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """Yield the commands that add up the products of a turn from the last to the first, each behind its settings.

    Of turns that go there and back, one begins with the setting that the one before it ends with: the array prepares a
    command while the one before it issues, and one that adds what is beyond int8 is short.
    """
    ends = [index + 1 for index, draft in enumerate(drafts) if draft.variant.startswith("run")]
    parts = [list(drafts[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    begins, last = drafts[ends[0] - 1].operands["accumulate"], len(parts) - 1
    for number, part in enumerate(reversed(parts)):
        yield from _with(part, accumulate=1 if number else begins, hold=int(number < last))


def _with(drafts: Sequence[Draft], **operands: int) -> list[Draft]:
    """Return commands of which the last has other operands."""
    return [*drafts[:-1], replace(drafts[-1], operands={**drafts[-1].operands, **operands})]


def _set(drafts: Sequence[Draft], variant: str, **operands: int) -> list[Draft]:
    """Return commands of which one setting has other operands."""
    return [replace(each, operands={**each.operands, **operands}) if each.variant == variant else each
            for each in drafts]


def _of_stretch(drafts: Sequence[Draft], stretch: Stretch, nest: LoopNest, words: int) -> list[Draft]:
    run = drafts[-1].operands
    found = _with(drafts, groups=stretch.groups,
                  base=run["base"] + stretch.first * nest.group_step - stretch.lead * TILE_BYTES,
                  weight_base=run["weight_base"] + words)
    shape = next(each.operands for each in drafts if each.variant == "set_shape")
    return _set(found, "set_shape", runs=shape["runs"] + stretch.lead) if stretch.lead else found


def _rest(plan: LayerPlan, tile: Tile, block: WeightBlock, rest: Part, drafts: Sequence[Draft],
          words: int) -> list[Draft]:
    """Return the commands that add the products of what is beyond int8, whose weights lie ``words`` behind."""
    rows, columns, runs = rest
    run = drafts[-1].operands
    if plan.nest.winograd:
        base = run["base"] + TILE_BYTES * runs.start
    else:
        down, right = kernel_steps(plan, tile)
        base = (run["base"] + down * (rows.start - block.rows.start) + right * (columns.start - block.columns.start)
                + TILE_BYTES * (runs.start - block.runs.start))
    found = _with(drafts, base=base, weight_base=run["weight_base"] + words, accumulate=1)
    return _set(found, "set_shape", runs=len(runs), kernel_x=len(columns), kernel_y=len(rows))


def _turns(drafts: Sequence[Draft], plan: LayerPlan, machine: Machine) -> Iterator[tuple[range, range]]:
    """Yield rows and columns of at most as many tiles as there are accumulators, with whole windows of a max pooling.

    Patches begin at even columns.
    """
    shape = next(each.operands for each in drafts if each.variant == "set_shape")
    height, width = drafts[-1].operands["tiles_y"], shape["tiles_x"]
    least = plan.work.pool.kernel if plan.work.pool is not None and not plan.nest.winograd else (1, 1)
    columns = min(-(-width // least[1]) * least[1], machine.tiles // least[0])
    rows = max(1, machine.tiles // columns // least[0]) * least[0]
    # Pixels at the end that make no whole window are not computed.
    for y in range(0, height - height % least[0], rows):
        for x in range(0, width - width % least[1], columns):
            yield range(y, min(y + rows, height)), range(x, min(x + columns, width))


def _of_turn(drafts: Sequence[Draft], rows: range, columns: range, nest: LoopNest) -> list[Draft]:
    run, steps = drafts[-1].operands, next(each.operands for each in drafts if each.variant == "set_tile_step")
    if nest.winograd:
        half = run["y_half"] + rows.start
        # A step to the block row before, as in a ring that closes, is one of the whole range less.
        base = run["base"] + half // 2 * steps["y_step"] + columns.start // 2 * steps["x_step"]
        found = _with(drafts, base=base % BUFFER_ADDRESSES, y_half=half % 2, tiles_y=len(rows))
    else:
        base = run["base"] + rows.start * steps["y_step"] + columns.start * steps["x_step"]
        found = _with(drafts, base=base, tiles_y=len(rows))
    return _set(found, "set_shape", tiles_x=len(columns))


def _act_of_stretch(drafts: Sequence[Draft], stretch: Stretch, plan: LayerPlan, block: WeightBlock,
                    machine: Machine) -> list[Draft]:
    if not drafts:
        return []
    run, first = drafts[-1].operands, stretch.first * machine.lanes
    each = 1 if plan.nest.channel_parameters else machine.channel_parameters
    found = _with(drafts, base=run["base"] + first * plan.layer.value_bytes,
                  parameter_base=run["parameter_base"] + first * each,
                  channels=min(stretch.groups * machine.lanes, block.channels - first))
    return _set(found, "set_stage", channel=block.first_channel + first) if plan.layer.stage is not None else found


def _writes(drafts: Sequence[Draft]) -> bool:
    """Tell whether act commands write anything: a max pooling may have no window within a turn at the tile's edge."""
    window = next((each.operands for each in drafts if each.variant == "window"), None)
    return window is None or min(window["rows"], window["width"]) > 0


def _act_of_turn(drafts: Sequence[Draft], rows: range, columns: range, plan: LayerPlan) -> list[Draft]:
    """Return the act commands for some tiles; a max pooling has its windows within them, and leaves the others out."""
    run, output = drafts[-1].operands, next(each.operands for each in drafts if each.variant == "set_output")
    side = 2 if plan.nest.winograd else 1
    y, x = side * rows.start, side * columns.start
    height, width = min(side * len(rows), run["rows"] - y), min(side * len(columns), output["width"] - x)
    found = _set(drafts, "set_output", width=width)
    down, right = plan.work.pool.strides if plan.work.pool is not None else (1, 1)
    window = next((each.operands for each in drafts if each.variant == "window"), None)
    if window is not None:
        found = _set(found, "window", rows=min(height // down, window["rows"] - y // down),
                     width=min(width // right, window["width"] - x // right))
    return _with(found, rows=height, base=(run["base"] + y // down * output["row_step"]
                                           + x // right * output["pixel_step"]))
