"""Tensors inside tensors: networks of concatenations, slices and upsampling compute what these mean, without copies."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import WINOGRAD_MACHINES
from tests.support.random_layers import random_machine
from tests.support.random_places import Sketch, padded, random_sketch
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer, TensorInfo
from tilewright.compiler.network.memory_map import plan_memory, tensor_bytes
from tilewright.compiler.network.movements import ConcatMove
from tilewright.compiler.network.parts.part_of_network import given, slice_network
from tilewright.compiler.network.places import place_tensors
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.planner import DoesNotFitError
from tilewright.compiler.schedule.races import check


def drawn(network, rng):
    return {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}


def assert_means(sketch, network, inputs, machine, *, keep=True):
    """Check the reference and the functional engine against the meaning of the steps; return what was compiled."""
    expected, reference = sketch.evaluate(inputs), run_network(network, inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(reference[name], value, err_msg=f"{name}, reference")
    compiled = compile_layers(network, machine, keep_tensors=keep)
    check((command for _, command in compiled.program.commands()), machine)
    found = execute(compiled, inputs)
    for name in expected if keep else [info.name for info in network.outputs]:
        if name in found:
            np.testing.assert_array_equal(found[name], expected[name], err_msg=f"{name}, functional engine")
    return compiled


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_mean_what_their_steps_say(seed):
    rng = np.random.default_rng(seed)
    sketch, outputs = random_sketch(rng)
    network = sketch.network(outputs)
    machine = WINOGRAD_MACHINES["base"] if rng.random() < 0.4 else random_machine(rng, any_array=True)
    inputs = drawn(network, rng)
    try:
        for keep in (True, False):
            assert_means(sketch, network, inputs, machine, keep=keep)
    except DoesNotFitError:
        assert machine is not WINOGRAD_MACHINES["base"], "base has room for all of these"
        pytest.skip("too large for a machine of small buffers")


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_views_between_layers_and_the_core_mean_what_they_say(seed):
    rng = np.random.default_rng(seed)
    sketch, outputs = random_sketch(rng, length=12, views=True)
    network = sketch.network(outputs)
    inputs = drawn(network, rng)
    for keep in (True, False):
        assert_means(sketch, network, inputs, WINOGRAD_MACHINES["base"], keep=keep)


@pytest.mark.parametrize("seed", range(200, 230))
def test_live_tensors_do_not_overlap_and_parts_lie_inside(seed):
    sketch, outputs = random_sketch(np.random.default_rng(seed), length=14)
    network = sketch.network(outputs)
    plan = plan_memory(network, 1000)
    spans, lives = {}, {}
    last = len(network.layers)
    for info in network.tensors.values():
        if info.name not in plan.tensors:
            continue
        start = plan.tensors[info.name]
        root = info.place.parent if info.place else info.name
        spans.setdefault(root, []).append((start, start + tensor_bytes(info), info.name))
        used = [i for i, layer in enumerate(network.layers) if info.name in (*layer.reads, *layer.writes)]
        used += [-1] if info in network.inputs else []
        used += [last] if info in network.outputs else []
        lives.setdefault(root, []).extend(used)
    for root, parts in spans.items():
        low, high = next((start, stop) for start, stop, name in parts if name == root)
        assert all(low <= start and stop <= high for start, stop, _ in parts)
    roots = [(spans[root][0], lives[root], root) for root in spans if lives[root]]
    whole = {root: next((start, stop) for start, stop, name in spans[root] if name == root) for root in spans}
    for i, (_, life, root) in enumerate(roots):
        for _, other_life, other in roots[i + 1:]:
            together = min(life) <= max(other_life) and min(other_life) <= max(life)
            apart = whole[root][1] <= whole[other][0] or whole[other][1] <= whole[root][0]
            assert apart or not together, (root, other)


def test_concatenation_costs_no_layer_and_no_byte():
    sketch = Sketch(np.random.default_rng(1))
    x = sketch.input((8, 10, 10))
    squeeze = sketch.layer(x, 8, 1)
    both = sketch.concat([sketch.layer(squeeze, 16, 1), sketch.layer(squeeze, 16, 3)])
    last = sketch.layer(both, 4, 1)
    network = sketch.network([last])
    assert len(network.layers) == 4
    assert not any(layer.also for layer in network.layers)
    place = network.tensors[sketch.meaning[2].output].place
    assert (place.parent, place.offset, place.row_step, place.pixel_step) == (both, 16, 320, 32)
    assert_means(sketch, network, drawn(network, sketch.rng), WINOGRAD_MACHINES["base"])


def test_upsampling_stores_a_layers_result_four_times():
    sketch = Sketch(np.random.default_rng(2))
    x = sketch.input((8, 6, 7))
    up = sketch.upsample(sketch.layer(x, 16, 3), (2, 2))
    skip = sketch.layer(sketch.input((4, 12, 14)), 8, 1)
    last = sketch.layer(sketch.concat([up, skip]), 4, 3)
    network = sketch.network([last])
    assert [len(layer.writes) for layer in network.layers] == [4, 1, 1]
    assert_means(sketch, network, drawn(network, sketch.rng), WINOGRAD_MACHINES["base"])


def test_what_cannot_move_is_copied_by_a_layer():
    sketch = Sketch(np.random.default_rng(3))
    x = sketch.input((5, 6, 6))
    y = sketch.layer(x, 5, 1)
    first = sketch.concat([x, y])
    second = sketch.concat([y, x, y])
    network = sketch.network([first, second])
    # The second is the first behind another y: the image is copied once.
    assert [(layer.kind, len(layer.writes)) for layer in network.layers] == [("conv", 2), ("pass", 1)]
    assert_means(sketch, network, drawn(network, sketch.rng), WINOGRAD_MACHINES["nano"])


def test_dense_blocks_store_each_result_once():
    sketch = Sketch(np.random.default_rng(4))
    parts = [sketch.layer(sketch.input((6, 8, 8)), 8, 3)]
    whole = parts[0]
    for _ in range(4):
        parts.append(sketch.layer(whole, 4, 3))
        whole = sketch.concat(list(parts))
    network = sketch.network([sketch.layer(whole, 4, 1)])
    assert not any(layer.also for layer in network.layers)
    assert {info.place.parent for info in network.tensors.values() if info.place} == {whole}
    assert_means(sketch, network, drawn(network, sketch.rng), WINOGRAD_MACHINES["base"])


def test_padding_is_a_layer():
    sketch = Sketch(np.random.default_rng(5))
    x = sketch.input((5, 6, 7))
    last = sketch.layer(padded(sketch, x, (1, 2, 0, 3), -7), 6, 3)
    network = sketch.network([last])
    inputs = drawn(network, sketch.rng)
    middle = run_network(network, inputs)[network.layers[0].output]
    np.testing.assert_array_equal(middle, np.pad(inputs[x], ((0, 0), (1, 0), (2, 3)), constant_values=-7))
    for machine in WINOGRAD_MACHINES.values():
        assert_means(sketch, network, inputs, machine)


def test_results_of_the_host_core_take_their_place_too():
    def info(name, channels):
        return TensorInfo(name=name, shape=(channels, 4, 4), scale=np.float32(1), zero_point=0,
                          dims=(1, channels, 4, 4))

    core = CoreLayer(name="core", onnx_nodes=("core",), op="Neg", inputs=("x",), output="a", attrs={}, reason="test")
    placed = place_tensors([core, ConcatMove(name="c", onnx_nodes=("c",), inputs=("a", "x"), output="y")],
                           {"x": info("x", 3), "a": info("a", 3), "y": info("y", 6)}, ["x"], ["y"])
    assert [type(layer).__name__ for layer in placed.layers] == ["CoreLayer", "Layer"]
    assert placed.tensors["a"].place.parent == "y"
    assert placed.tensors["x"].place is None


@pytest.mark.parametrize("seed", range(300, 320))
def test_ranges_of_layers_compute_what_the_whole_does(seed):
    rng = np.random.default_rng(seed)
    sketch, outputs = random_sketch(rng, length=8)
    network = sketch.network(outputs)
    values = run_network(network, drawn(network, rng))
    for cut in range(1, len(network.layers)):
        for first, stop in ((0, cut), (cut, len(network.layers))):
            part = slice_network(network, first, stop)
            # What the range must compute itself is not there before.
            inputs = given(part, values)
            found = run_network(part, inputs)
            for info in part.outputs:
                np.testing.assert_array_equal(found[info.name], values[info.name])
            compiled = compile_layers(replace(part, name="part"), WINOGRAD_MACHINES["base"])
            executed = execute(compiled, inputs)
            for info in part.outputs:
                np.testing.assert_array_equal(executed[info.name], values[info.name])


def test_layers_that_read_one_part_and_write_another_do_not_wait_for_more():
    def waits(concat):
        sketch = Sketch(np.random.default_rng(0))
        parts = [sketch.layer(sketch.input((16, 56, 56)), 32, 1)]
        for _ in range(4):
            parts.append(sketch.layer(parts[-1], 32, 3))
        last = sketch.layer(sketch.concat(parts) if concat else parts[-1], 32, 1)
        compiled = compile_layers(sketch.network([last]), WINOGRAD_MACHINES["base"])
        return sum("wait_mem_ready" in command.flags for _, command in compiled.program.commands())
    # Where the parts' rows overlap as intervals, every strip but the first would wait: 110 times, not 15.
    assert waits(concat=True) <= waits(concat=False) + 3
