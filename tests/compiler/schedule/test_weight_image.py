"""The weight image, read back word by word as docs/datapath.md lays it out."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tests.support.random_layers import RESIDUALS, Shape, build_layer
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.plan.algorithms import Algorithm, kernel_runs, loop_nest, loop_nests
from tilewright.compiler.plan.footprint import WeightBlock
from tilewright.compiler.plan.planner import cut_blocks, plan_layer
from tilewright.compiler.plan.problem import Problem
from tilewright.compiler.schedule.weight_image import pack_conv, pack_conv23, pack_network, pack_parameters
from tilewright.isa.machine import Machine
from tilewright.isa.numerics import pack_scale

MACHINES = [WINOGRAD_MACHINES["nano"], WINOGRAD_MACHINES["base"], WINOGRAD_MACHINES["large"],
            Machine(name="two clusters", lanes=4, clusters=2, post_lanes=2)]


def layer_of(channels: int, outputs: int, kernel: int, size: int = 6, groups: int = 1, dilation: int = 1):
    axis = Shape(size, kernel, 1, dilation, 0, 0)
    return replace(build_layer(np.random.default_rng(5), "conv", channels, outputs, groups, [axis, axis]), pool=None,
                   residual=None)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_conv23_kernels_lie_in_main_and_ninth_words(machine):
    channels, outputs = 5, 3 * machine.lanes
    kernels = np.random.default_rng(2).integers(-128, 128, (3, machine.lanes, channels, 9)).astype(np.int8)
    main, ninths = (np.frombuffer(data, np.int8).reshape(-1, machine.clusters, 16)
                    for data in pack_conv23(kernels, machine))
    per_cluster = machine.lanes_per_cluster
    for output in range(outputs):
        group, lane = divmod(output, machine.lanes)
        cluster, own = divmod(lane, per_cluster)
        for channel in range(channels):
            q = (group * channels + channel) * per_cluster + own
            kernel = kernels[group, lane, channel]
            assert (main[q // 2, cluster, 8 * (q % 2):][:8] == kernel[:8]).all()
            assert ninths[q // 16, cluster, q % 16] == kernel[8]


def test_pairs_of_channels_are_words_of_even_lanes_and_then_of_odd_ones():
    machine, channels = Machine(array="winograd_inner", lanes=8, clusters=2), 6
    kernels = np.random.default_rng(2).integers(-128, 128, (3, 8, channels, 9)).astype(np.int8)
    main, ninths = (np.frombuffer(data, np.int8).reshape(-1, 2, 16) for data in pack_conv23(kernels, machine))
    for group, lane, channel in np.ndindex(3, 8, channels):
        cluster, own = divmod(lane, 4)
        word = ((group * channels // 2 + channel // 2) * 2 + own % 2) * 2 + own // 2
        kernel = kernels[group, lane, channel]
        assert (main[word, cluster, 8 * (channel % 2):][:8] == kernel[:8]).all()
        assert ninths[word // 8, cluster, word % 8 * 2 + channel % 2] == kernel[8]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize(("channels", "kernel", "dilation"), [(5, 3, 1), (20, 1, 1), (3, 5, 2), (33, 2, 1), (7, 6, 1)])
def test_conv_runs_meet_the_bytes_of_the_input(machine, channels, kernel, dilation):
    layer = layer_of(channels, 2 * machine.lanes, kernel, size=12 if dilation > 1 else 6, dilation=dilation)
    how = loop_nest(layer, Algorithm.DOT_PRODUCTS, machine)
    runs = kernel_runs(layer, how, machine, layer.weights)
    words = np.frombuffer(pack_conv(runs, machine), np.int8).reshape(-1, machine.clusters, 16)
    steps, per_cluster = how.steps, machine.lanes_per_cluster
    for output in range(layer.conv_shape[0]):
        group, lane = divmod(output, machine.lanes)
        cluster, own = divmod(lane, per_cluster)
        first = group * steps * per_cluster + own
        read = words[first:first + steps * per_cluster:per_cluster, cluster].reshape(how.kernel_y, how.kernel_x, -1)
        # Pixel by pixel, channels fastest: as the input lies in the buffer.
        flat = layer.weights[output].transpose(1, 2, 0).reshape(how.kernel_y, how.kernel_x, -1)
        assert (read[:, :, :flat.shape[2]] == flat).all()
        assert not read[:, :, flat.shape[2]:].any()


@pytest.mark.parametrize(("channels", "kernel", "dilation"), [(1, 5, 1), (2, 4, 1), (8, 3, 3), (5, 2, 2), (1, 7, 1),
                                                             (3, 7, 1), (4, 5, 1), (5, 4, 1)])
def test_paired_rows_meet_8_bytes_of_each_kernel_row(channels, kernel, dilation):
    machine = WINOGRAD_MACHINES["base"]
    layer = layer_of(channels, 7, kernel, size=12, dilation=dilation)
    how = loop_nests(layer, Algorithm.DOT_PRODUCTS, machine)[1]
    assert how.paired
    runs = kernel_runs(layer, how, machine, layer.weights).reshape(2 * machine.lanes, how.kernel_y, how.kernel_x, 2, 8)
    for output in range(7):
        columns = 1 if dilation == 1 else kernel
        rows = layer.weights[output].transpose(1, 2, 0).reshape(kernel, columns, -1)
        for row in range(2 * how.kernel_y):
            read = runs[output, row // 2, :, row % 2].reshape(columns, -1)
            if row == kernel:
                assert not read.any()
                continue
            assert (read[:, :rows.shape[2]] == rows[row]).all()
            assert not read[:, rows.shape[2]:].any()


@pytest.mark.parametrize(("channels", "outputs", "groups", "seen", "step"), [
    (8, 8, 8, 4, 4),      # depthwise: four channels side by side
    (8, 16, 8, 2, 2),     # two outputs per channel
    (12, 24, 2, 6, 0),    # groups of 12 outputs: one after the other
    (6, 9, 3, 6, 0),      # three outputs do not divide four lanes: all channels
])
def test_lanes_of_a_group_see_the_channels_of_their_outputs(channels, outputs, groups, seen, step):
    machine = WINOGRAD_MACHINES["base"]
    layer = layer_of(channels, outputs, 3, groups=groups)
    how = loop_nest(layer, Algorithm.DOT_PRODUCTS, machine)
    assert (how.seen, how.group_step) == (seen, step)
    runs = kernel_runs(layer, how, machine, layer.weights)
    each, together = channels // groups, outputs // groups
    for output in range(outputs):
        lane_group, lane = divmod(output, machine.lanes)
        start = lane_group * how.group_step
        if how.section:
            start += lane_group // how.section * how.section_step
        first = output // together * each - start
        flat = runs[lane_group, lane].reshape(how.kernel_y, how.kernel_x, -1)
        if how.kernel_x == 1:
            flat = flat[:, :, :3 * seen].reshape(3, 3, seen)
        assert (flat[:, :, first:first + each] == layer.weights[output].transpose(1, 2, 0)).all()
        assert np.count_nonzero(flat) == np.count_nonzero(layer.weights[output])


def test_parameters_are_bias_mantissa_and_shift():
    layer = layer_of(3, 7, 3)
    words = np.frombuffer(pack_parameters(layer, layer.bias), "<u4").reshape(-1, 2)
    assert (words[:, 0].view(np.int32) == layer.bias).all()
    for channel, scale in enumerate(layer.requantisation.scale):
        mantissa, shift = pack_scale(float(scale))
        assert words[channel, 1] == mantissa | shift << 24


def test_a_scale_that_cannot_be_expressed_is_refused():
    layer = layer_of(3, 2, 3)
    layer = replace(layer, requantisation=replace(layer.requantisation, scale=np.array([1.0, 0.0], np.float32)))
    with pytest.raises(CompileError, match=r"'conv 3x6x6', channel 1: .*not 0"):
        pack_parameters(layer, layer.bias)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_blocks_lie_one_behind_the_other_in_the_order_of_use(machine):
    plans = {index: plan_layer(layer_of(9, 70, kernel), machine) for index, kernel in enumerate((1, 3, 6))}
    image, places = pack_network(plans, machine)
    spans = [span for layer in places.values() for span in (
        layer[0].table, *(span for block in layer for span in (block.main, block.ninths, block.parameters)))]
    assert spans[0].start == 0
    assert max(span.stop for span in spans) == len(image)
    new = [span for index, span in enumerate(spans) if span.size and span not in spans[:index]]     # others are alike
    assert all(one.stop == two.start for one, two in pairwise(new))
    assert all(span.start % 16 == 0 for span in spans)


def test_parts_of_a_kernel_share_parameters():
    layer = replace(layer_of(70, 8, 6), residual=RESIDUALS[0])
    base = WINOGRAD_MACHINES["base"]
    nest = loop_nest(layer, Algorithm.DOT_PRODUCTS, base)
    blocks = cut_blocks(Problem(layer, LayerLayouts.gap_free(layer), nest, base), 1, 3)
    assert [block.first_group for block in blocks] == [0, 0, 0, 1, 1, 1]
    assert all(isinstance(block, WeightBlock) for block in blocks)
    covered = sorted(run for block in blocks[:3] for run in block.runs)
    assert covered == list(range(-(-70 * 36 // 16)))
