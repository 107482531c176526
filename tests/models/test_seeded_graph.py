"""Graphs with seeded weights are valid, the same each time, and normalised by the statistics of their own inputs."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tilewright.models.batch_statistics import set_statistics
from tilewright.models.export import INPUT
from tilewright.models.images import images
from tilewright.models.large import NETWORKS, SEED
from tilewright.models.seeded_graph import SeededGraph
from tilewright.runtime.oracle.onnx_runtime import session

SIDE = 16


def small(seed=0):
    graph = SeededGraph(seed)
    x = graph.silu(graph.convolution(INPUT, "stem", 8, 3, stride=2))
    y = graph.relu6(graph.convolution(x, "depthwise", 8, 3, groups=8))
    x = graph.add(graph.leaky_relu(x, 0.1), y, "sum")
    x = graph.max_pool(graph.concatenate(graph.upsample(x), graph.upsample(y), "joined"), 3, 2, ceil=True)
    assert graph.channels(x) == 16
    return graph.model(SIDE, {"scores": graph.linear(graph.average(graph.relu(x)), "fc", 5), "early": y})


def test_every_operator_has_the_shape_it_says():
    model = small()
    onnx.checker.check_model(model, full_check=True)
    sizes = {value.name: [each.dim_value for each in value.type.tensor_type.shape.dim] for value in model.graph.output}
    assert sizes == {"scores": [1, 5], "early": [1, 8, 8, 8]}
    assert len({node.name for node in model.graph.node}) == len(model.graph.node)


def test_weights_are_those_of_the_seed():
    first, again, other = (small(seed).SerializeToString() for seed in (0, 0, 1))
    assert first == again != other


def test_kernels_keep_the_variance():
    graph = SeededGraph(0)
    weights = graph.model(SIDE, {"y": graph.convolution(INPUT, "conv", 4096, 3, normalised=False)}).graph.initializer
    kernel = next(numpy_helper.to_array(each) for each in weights if each.name == "conv.weight")
    assert kernel.dtype == np.float32
    assert kernel.std() == pytest.approx(np.sqrt(2 / 27), rel=0.01)


def test_normalisations_have_the_statistics_of_a_batch():
    model, batch = small(), images(4, SIDE, seed=2)
    set_statistics(model, batch)
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in ("stem", "depthwise"))
    runs = [session(model.SerializeToString()).run(["stem", "depthwise"], {INPUT: image[np.newaxis]})
            for image in batch]
    for name, values in zip(("stem", "depthwise"), map(np.concatenate, zip(*runs, strict=True)), strict=True):
        np.testing.assert_allclose(values.mean(axis=(0, 2, 3)), constants[f"{name}.shift"], atol=1e-4)
        np.testing.assert_allclose(values.std(axis=(0, 2, 3)), constants[f"{name}.gain"], rtol=1e-3)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "vgg16-224"])
def test_every_network_is_a_valid_graph_before_its_statistics(name):
    constructor, side = NETWORKS[name]
    graph = SeededGraph(SEED)
    ends = constructor(graph, side)
    onnx.checker.check_model(graph.model(side, ends if isinstance(ends, dict) else {"logits": ends}), full_check=True)
