"""A batch computes for every image what the network of one computes, and loads its weights once."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.batches import assert_batch_is_its_images
from tests.support.core_networks import NETWORKS
from tests.support.factor_networks import product_network
from tests.support.onnx_models import ModelBuilder
from tests.support.random_chains import random_chain
from tests.support.random_layers import network_of, random_layer, random_machine
from tests.support.random_places import random_sketch
from tilewright.compiler.batch.in_batch import image_name, in_batch
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.network.layers import CoreLayer, Layer, Network
from tilewright.compiler.network.options import Options
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.planner import DoesNotFitError
from tilewright.compiler.schedule.steps import needs_of, order, steps_of
from tilewright.isa.machine import Machine, preset
from tilewright.models import builtin
from tilewright.runtime.check.model_check import check_model
from tilewright.runtime.design.design import Design
from tilewright.runtime.model_source import ModelSource


@pytest.mark.parametrize("seed", range(60))
def test_a_layer_of_any_kind(seed):
    rng = np.random.default_rng(seed)
    network, machine = network_of(random_layer(rng)), random_machine(rng, any_array=True)
    try:
        compile_layers(network, machine)
    except DoesNotFitError:
        pytest.skip("the layer does not fit the machine alone")
    assert_batch_is_its_images(network, machine, int(rng.integers(2, 6)), seed)


@pytest.mark.parametrize("seed", range(30))
def test_chains_whose_tensors_may_stay_on_chip(seed):
    rng = np.random.default_rng(seed)
    assert_batch_is_its_images(random_chain(rng), preset(("nano", "base")[seed % 2]), int(rng.integers(2, 5)), seed)


@pytest.mark.parametrize("unit", ["residual_adder", "value_tables", "max_pooling", "whole_sums"])
def test_machines_that_lack_a_unit(unit):
    model = ModelBuilder("qdq", seed=9)
    x = model.conv(model.input((1, 4, 8, 6)), 8, pads=(1, 1, 1, 1))
    y = model.max_pool(model.add(model.conv(x, 8, pads=(1, 1, 1, 1)), x), strides=(2, 2))
    network = compile_network(model.finish(model.conv(y, 5)))
    assert_batch_is_its_images(network, replace(preset("base"), name="lacking", **{unit: False}), 3)


@pytest.mark.parametrize("name", sorted(NETWORKS.keys() - {"floats alone"}))
def test_layers_of_the_host_core(name):
    assert_batch_is_its_images(NETWORKS[name](), preset("base"), 3)


@pytest.mark.parametrize("seed", range(40))
def test_tensors_inside_tensors(seed):
    rng = np.random.default_rng(seed)
    sketch, outputs = random_sketch(rng, views=seed % 2 == 1)
    assert_batch_is_its_images(sketch.network(outputs), preset("nano"), 2, seed)


@pytest.mark.parametrize("model", ["lenet5", "lenet5_accel", "mlperf-kws"])
@pytest.mark.parametrize("images", [1, 2, 5])
def test_built_in_networks(model, images):
    assert_batch_is_its_images(compile_network(builtin(model)), preset("base"), images)


def dense(inputs: int, outputs: int, size: int = 1) -> Network:
    model = ModelBuilder("qdq", seed=7)
    x = model.input((1, inputs, size, size))
    return compile_network(model.finish(model.conv(x, outputs, kernel=size)))


def test_a_dense_layer_meets_all_images_with_each_weight():
    network = dense(512, 64)
    compiled = assert_batch_is_its_images(network, preset("base"), 8)
    (layer,), (plan,) = compiled.network.layers, compiled.plans
    assert (layer.images, layer.out_shape) == (1, (64, 8, 1))
    assert len(plan.tiles) == 1
    assert plan.tiles[0].rows.out == range(8)
    one = compile_layers(network, preset("base"), keep_tensors=True)
    assert plan.cost.cycles < 2 * one.plans[0].cost.cycles


@pytest.mark.parametrize("images", [3, 20])
def test_a_dense_layer_whose_inputs_do_not_fit_together_loads_parts_of_all(images):
    machine = Machine(name="tiny", lanes=2, post_lanes=2, activation_bytes=4096, weight_bytes=4096, result_bytes=1024)
    compiled = assert_batch_is_its_images(dense(40, 6, 8), machine, images)
    (plan,) = compiled.plans
    assert plan.splits_input
    assert len(plan.largest.rows.conv) > 1
    assert all(len(tile.rows.conv) <= machine.tiles for tile in plan.tiles)


def test_a_convolution_loads_its_weights_once_for_all_images():
    model = ModelBuilder("qdq", seed=8)
    network = compile_network(model.finish(model.conv(model.input((1, 256, 4, 4)), 256, kernel=3, pads=(1, 1, 1, 1))))
    compiled = assert_batch_is_its_images(network, preset("base"), 4)
    (layer,), (plan,) = compiled.network.layers, compiled.plans
    assert layer.images == 4
    assert plan.weights_outer
    assert len(plan.tiles) == 4
    assert len(plan.blocks) > 1
    # All four inputs fit the buffer, and stay there for all blocks.
    assert plan.holds == 4
    assert [tile for tile, _ in order(plan)][:8] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert len(needs_of("input", steps_of({0: plan}, 1), {0: plan})) == 4


@pytest.mark.parametrize(("channels", "size", "images", "holds"), [(512, 4, 8, 4), (1024, 8, 3, 0)])
def test_inputs_are_held_in_rounds_or_go_there_and_back(channels, size, images, holds):
    model = ModelBuilder("qdq", seed=8)
    x = model.input((1, channels, size, size))
    network = compile_network(model.finish(model.conv(x, 64, kernel=3, pads=(1, 1, 1, 1))))
    compiled = assert_batch_is_its_images(network, preset("base"), images)
    (plan,) = compiled.plans
    assert plan.weights_outer
    assert plan.holds == holds
    tiles, blocks = len(plan.tiles), len(plan.blocks)
    assert blocks > 1
    inputs, weights = (len(needs_of(kind, steps_of({0: plan}, 1), {0: plan})) for kind in ("input", "weights"))
    if holds:
        assert (inputs, weights) == (tiles, blocks * -(-tiles // holds))
    else:
        # The last tile under a block is the first under the next, and is loaded once for both.
        assert [tile for tile, _ in order(plan)][-2 * tiles:] == [*reversed(range(tiles)), *range(tiles)]
        assert (inputs, weights) == ((tiles - 1) * blocks + 1, blocks)


def test_a_product_by_a_computed_vector_is_one_layer_for_each_image():
    network = product_network(37)
    compiled = assert_batch_is_its_images(network, preset("base"), 3)
    assert [layer.name for layer in compiled.network.layers if isinstance(layer, Layer) and layer.factor] == [
        image_name("scale", image) for image in range(3)]


def test_a_chain_that_stays_on_chip_is_computed_image_by_image_where_that_is_quicker():
    network = compile_network(builtin("lenet5"))
    whole = in_batch(network, 2)
    apart = in_batch(network, 2, {0, 1})
    assert [layer.name for layer in apart.layers[:4]] == [
        image_name(network.layers[index].name, image) for image in (0, 1) for index in (0, 1)]
    assert len(apart.layers) == len(whole.layers) + 2
    # What only the chain touches is a tensor for itself; what others read is a part of all images.
    assert apart.tensors[apart.layers[0].output].place is None
    assert apart.tensors[apart.layers[1].output].place.parent == network.layers[1].output


def test_a_border_without_an_extent_for_images_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"'y'.*\(2, 3\)"):
        in_batch(NETWORKS["floats alone"](), 3)


def test_a_number_without_dimensions_is_refused_with_its_node():
    network = NETWORKS["core first and last"]()
    layer = next(each for each in network.layers if isinstance(each, CoreLayer))
    number = replace(network.tensors[layer.output], dims=(), shape=(1, 1, 1))
    changed = replace(network, tensors={**network.tensors, layer.output: number})
    with pytest.raises(UnsupportedNodeError, match="no dimensions"):
        in_batch(changed, 2)
    assert in_batch(changed, 1) is changed


@pytest.mark.parametrize("batch", [0, -1, True, 2.0, 1025])
def test_a_batch_is_a_number_of_images(batch):
    with pytest.raises(ValueError, match=r"1\.\.1024"):
        Options(batch=batch)


def test_a_check_of_a_batch_counts_its_memory():
    source = ModelSource.of(builtin("mlperf-kws"))
    one, four = (check_model(source, Design(machine=preset("base")), options=Options(batch=batch)) for batch in (1, 4))
    assert one.memory.weights == pytest.approx(four.memory.weights, rel=0.1)
    assert four.memory.activations >= 3 * one.memory.activations
    assert one.cycles < four.cycles < 4 * one.cycles
