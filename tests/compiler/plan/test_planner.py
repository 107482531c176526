"""Plans: what is chosen and why, what does not fit, and the cycles foretold for whole networks."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tests.support.random_layers import RESIDUALS, Shape, all_alike, build_layer, random_layer, random_machine
from tests.support.stacks import large_network
from tilewright.compiler.network.layers import Layer, MaxPooling
from tilewright.compiler.plan.algorithms import Algorithm, loop_nest
from tilewright.compiler.plan.cost import mac_cycles, post_cycles
from tilewright.compiler.plan.footprint import (
    block_words,
    input_bytes,
    linear_row_step,
    pair_words,
    part_bytes,
    result_bytes,
    tiles_of,
    usable_words,
)
from tilewright.compiler.plan.planner import DoesNotFitError, plan_layer
from tilewright.compiler.plan.tiles import LayerAxis, axes
from tilewright.isa.machine import Machine, preset

BASE = WINOGRAD_MACHINES["base"]


def conv(channels: int, outputs: int, size: int, kernel: int, *, stride: int = 1, pad: int = 0,
         pool: MaxPooling | None = None) -> Layer:
    axis = Shape(size, kernel, stride, 1, pad, pad)
    layer = build_layer(np.random.default_rng(0), "conv", channels, outputs, 1, [axis, axis])
    out = layer.conv_shape
    if pool:
        out = (outputs, *((side + 2 * pool.pads[0] - pool.kernel[0]) // pool.strides[0] + 1 for side in out[1:]))
    return replace(layer, pool=pool, residual=None, out_shape=out)


# ---- tiles


def test_a_strip_under_pooling_recomputes_what_windows_share():
    """3x3 windows with stride 2 and padding 1: pooled rows a .. b - 1 need rows 2a - 1 .. 2b - 1 of the convolution."""
    axis = LayerAxis(image=112, conv=112, out=56, kernel=1, stride=1, dilation=1, pad=0, window=3, window_stride=2,
                     window_pad=1)
    first, middle, last = axis.cut(0, 10), axis.cut(10, 20), axis.cut(50, 56)
    assert (first.conv, first.window_before) == (range(20), 1)
    assert (middle.conv, middle.window_before) == (range(19, 40), 0)
    assert (last.conv, last.window_before) == (range(99, 112), 0)


@pytest.mark.parametrize("seed", range(30))
def test_slices_cover_what_the_kernel_touches(seed):
    layer = random_layer(np.random.default_rng(seed))
    for axis in axes(layer):
        for size in {1, 2, axis.out}:
            for cut in axis.cuts(size):
                touched = {row * axis.stride - axis.pad + tap * axis.dilation for row in cut.conv
                           for tap in range(axis.kernel)}
                inside = {row for row in touched if 0 <= row < axis.image}
                assert inside <= set(cut.image)
                if not axis.skips:
                    assert cut.stored == max(touched) - min(touched) + 1
        assert [row for cut in axis.cuts(3) for row in cut.out] == list(range(axis.out))


def test_rows_that_a_strided_1x1_kernel_skips_are_not_loaded():
    height, _ = axes(conv(16, 16, 15, 1, stride=2))
    assert height.cut(1, 4).image == range(2, 7, 2)
    assert height.cut(1, 4).stored == 3


# ---- costs


@pytest.mark.parametrize(("tiles", "expected"), [(1, 4), (4, 4), (5, 8), (49, 52)])
def test_a_short_tile_group_costs_a_weight_fetch(tiles, expected):
    assert mac_cycles(tiles, 1, 1, BASE) == expected
    assert mac_cycles(tiles, 3, 10, BASE) == 30 * expected


def test_without_lanes_to_feed_a_short_tile_group_costs_itself():
    assert mac_cycles(5, 1, 1, WINOGRAD_MACHINES["nano"]) == 5


def test_rates_of_post_processing():
    layer = conv(16, 16, 8, 3, pad=1)
    winograd, direct = loop_nest(layer, Algorithm.WINOGRAD, BASE), loop_nest(layer, Algorithm.DOT_PRODUCTS, BASE)
    assert tiles_of(5, 7, winograd) == 12
    assert tiles_of(5, 7, direct) == 35
    assert post_cycles(12, 4 * BASE.lanes, layer, winograd, BASE) == 4 * 12 * 4
    assert post_cycles(35, 4 * BASE.lanes - 3, layer, direct, BASE) == 35 * 4
    assert post_cycles(35, 4 * BASE.lanes, replace(layer, residual=RESIDUALS[0]), direct, BASE) == 4 * 35 * 4
    overlapping = MaxPooling(kernel=(3, 3), strides=(2, 2), pads=(0, 0, 0, 0))
    assert post_cycles(40, 4 * BASE.lanes, replace(layer, pool=overlapping), direct, BASE) == 40 * 4 * 9 // 4


def test_lanes_without_a_channel_take_no_cycle_of_post_processing():
    large, layer = preset("large"), conv(16, 16, 8, 3, pad=1)
    assert large.lanes == 2 * large.post_lanes == 32
    nest = loop_nest(layer, Algorithm.WINOGRAD, large)
    assert [post_cycles(12, channels, layer, nest, large) for channels in (16, 17, 32, 48)] == [48, 96, 96, 144]


# ---- choices


def per_byte(kind: str, channels: int, size: int, kernel: int = 1) -> Layer:
    axis = Shape(size, kernel, 1, 1, 0, 0)
    layer = build_layer(np.random.default_rng(0), kind, channels, channels, channels, [axis, axis])
    return replace(all_alike(layer), pool=None, residual=None, out_shape=layer.conv_shape)


def test_the_average_of_an_image_runs_across_channels():
    layer = per_byte("average", 1280, 5, kernel=5)
    plan = plan_layer(layer, BASE)
    assert plan.nest.across
    assert 25 * 320 < plan.cost.cycles < 25 * 320 * 2
    # By lane groups, each of them waits for a weight fetch of four slots.
    one_unlike = replace(layer, bias=np.arange(1280, dtype=np.int32))
    assert not plan_layer(one_unlike, BASE).nest.across
    assert plan_layer(one_unlike, BASE).cost.cycles > 25 * 320 * 4


def test_three_channels_leave_no_lane_idle():
    plan = plan_layer(per_byte("pass", 3, 40), BASE)
    assert plan.nest.across
    assert all(len(tile.columns.out) * 3 % BASE.lanes == 0 for tile in plan.tiles)
    # 39 pixels of 3 channels are no whole tiles, and max pooling has to know pixels.
    assert not plan_layer(per_byte("pass", 3, 39), BASE).nest.across
    pool = MaxPooling(kernel=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0))
    pooled = replace(per_byte("pass", 3, 40), pool=pool, out_shape=(3, 20, 20))
    assert not plan_layer(pooled, BASE).nest.across


def test_winograd_is_taken_where_it_is_faster():
    assert plan_layer(conv(64, 64, 28, 3, pad=1), BASE).nest.algorithm == "conv23"
    assert plan_layer(conv(64, 64, 28, 3, stride=2), BASE).nest.algorithm == "conv"
    assert plan_layer(conv(64, 64, 28, 5), BASE).nest.algorithm == "conv"


def test_pixels_that_a_stride_skips_are_computed_only_where_a_unit_drops_them():
    axis = Shape(20, 3, 2, 1, 1, 1)
    layer = build_layer(np.random.default_rng(0), "conv", 16, 16, 16, [axis, axis])
    layer = replace(layer, residual=None, table=None)
    assert plan_layer(layer, BASE).work.pool is not None
    without = replace(BASE, name="no pooling", max_pooling=False)
    assert plan_layer(layer, without).work.pool is None


@pytest.mark.parametrize(("channels", "kernel", "dilation", "steps"), [
    (1, 5, 1, 3),    # LeNet-5's first layer: 5 bytes a row
    (2, 4, 1, 2),
    (3, 3, 1, 3),    # 9 bytes a row: two pieces of two pairs would be 4
    (3, 7, 1, 12),   # 21 bytes: three pieces of four pairs, not two runs of seven rows
    (4, 5, 1, 9),
    (8, 3, 3, 6),    # dilated columns: 8 bytes, row by row and column by column
    (9, 4, 3, 16),   # the same with more bytes: not in pieces
    (1, 3, 16, 9),   # rows 16 apart are never 8 (mod 16) bytes apart
])
def test_rows_are_paired_where_that_takes_fewer_runs(channels, kernel, dilation, steps):
    layer = replace(conv(channels, 6, 48, kernel, stride=2), dilations=(dilation, dilation))
    plan = plan_layer(replace(layer, conv_shape=(6, 4, 4), out_shape=(6, 4, 4)), BASE)
    assert plan.nest.steps == steps
    for tile in plan.tiles:
        step = linear_row_step(tile, plan.layer, plan.nest)
        assert step >= tile.columns.stored * channels
        assert not plan.nest.paired or dilation * step == 16 * pair_words(tile, plan.layer, plan.nest) + 8


def test_a_kernel_as_large_as_the_image_is_one_run():
    how = plan_layer(conv(20, 8, 5, 5), BASE).nest
    assert (how.kernel_y, how.kernel_x, how.runs) == (1, 1, 32)


def test_coded_weights_of_a_dense_layer_are_fewer_blocks():
    layer = conv(128, 128, 1, 1)
    raw, coded = (plan_layer(layer, replace(preset("base"), coded_weights=each)) for each in (False, True))
    assert 1 < len(coded.blocks) < len(raw.blocks)


def test_a_kernel_too_large_for_the_weight_memory_is_split():
    plan = plan_layer(conv(512, 8, 7, 7), BASE)
    assert len(plan.blocks) > 2
    assert all(2 * block_words(block, plan.nest, BASE) <= usable_words(BASE) for block in plan.blocks)
    assert not plan.splits_input


def test_a_kernel_too_large_for_all_buffers_splits_its_input():
    machine = Machine(name="tiny", lanes=2, post_lanes=2, activation_bytes=4096, weight_bytes=4096, result_bytes=1024)
    plan = plan_layer(conv(64, 6, 10, 10), machine)
    assert plan.splits_input
    assert all(part_bytes(block, plan.largest, plan.layer, plan.nest) <= machine.activation_bytes
               for block in plan.blocks)


def test_columns_are_cut_only_where_a_row_does_not_fit():
    assert len(plan_layer(conv(64, 64, 112, 3, pad=1), BASE).tiles[0].columns.out) == 112
    assert len(plan_layer(conv(64, 64, 224, 3, pad=1), WINOGRAD_MACHINES["nano"]).tiles[0].columns.out) < 224


@pytest.mark.parametrize("seed", range(200))
def test_a_plan_fits_its_machine_and_covers_the_output(seed):
    rng = np.random.default_rng(seed)
    layer, machine = random_layer(rng), random_machine(rng)
    try:
        plan = plan_layer(layer, machine)
    except DoesNotFitError:
        # Nothing to check; tests/compiler/test_random_layers.py bounds how many there are.
        return
    covered = np.zeros(layer.out_shape, int)
    for tile in plan.tiles:
        for block in plan.blocks:
            if not block.resumes:
                covered[block.first_channel:block.first_channel + block.channels,
                        tile.rows.out.start:tile.rows.out.stop, tile.columns.out.start:tile.columns.out.stop] += 1
            needed = part_bytes(block, tile, layer, plan.nest) if plan.splits_input \
                else input_bytes(tile, layer, plan.nest)
            assert needed <= machine.activation_bytes
            assert result_bytes(tile, layer, block.channels) <= machine.result_bytes
            assert block_words(block, plan.nest, machine) <= machine.weight_words
            assert block.channels <= machine.parameter_channels
    assert (covered == 1).all()


# ---- refusals


def test_a_layer_that_does_not_fit_says_what_it_needs():
    machine = Machine(name="tiny", activation_bytes=4096, weight_bytes=4096, result_bytes=1024)
    with pytest.raises(DoesNotFitError) as refusal:
        plan_layer(conv(300, 8, 16, 7, pad=3), machine)
    assert str(refusal.value) == (
        "The smallest tile of layer 'conv 300x16x16' needs as conv 14712 bytes of activations, 8448 of weights and 4 "
        "of results, and machine tiny has 4096, 4096 and 1024: take a larger machine")


def test_a_window_too_large_for_the_operands_is_refused():
    pool = MaxPooling(kernel=(16, 16), strides=(2, 2), pads=(0, 0, 0, 0))
    with pytest.raises(DoesNotFitError, match=r"'conv 3x20x20'.*at most 15, not 16"):
        plan_layer(conv(3, 4, 20, 1, pool=pool), BASE)


# ---- whole networks


@pytest.mark.parametrize(("name", "model", "limit"), [
    ("vgg16-32", 3.0e6, 3.4e6),
    ("resnet18-32", 4.5e6, 5.0e6),
    pytest.param("resnet18-224", 17.1e6, 18.5e6, marks=pytest.mark.slow),
    pytest.param("resnet50-224", 52e6, 57e6, marks=pytest.mark.slow),
    pytest.param("vgg16-224", 122e6, 135e6, marks=pytest.mark.slow),
])
def test_foretold_cycles_reach_the_figures(name, model, limit):
    """Model column and limits of docs/architecture.md, for machine base."""
    cycles = sum(plan_layer(layer, BASE).cost.cycles for layer in large_network(name).layers)
    assert 0.95 * model < cycles < 1.05 * model
    assert cycles < limit
