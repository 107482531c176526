"""Linear and cubic resizes run on the datapath in both forms, within one level of ONNX Runtime, exact where said."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.execute import execute
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import preset

TYPES = [(np.int8, None), (np.uint8, None)]


def resized(model, x, sizes, *, scales=None, y_scale=None, **attrs):
    """Add a Resize of ``x`` to ``sizes``, by ``scales`` if there are any."""
    shape = (*x.shape[:2], *sizes)
    extra = ("", model.constant(np.array([1, 1, *scales], np.float32))) if scales else \
        ("", "", model.constant(np.array(shape)))
    if y_scale is None:
        return model.moved("Resize", x, shape, extra=extra, **attrs)
    y = model.value(shape, np.float32(y_scale), x.zero_point)
    model.quantised(model.node("Resize", [model.dequantised(x), *extra], f"float{len(model.nodes)}", **attrs), y)
    return y


def on_datapath(network):
    """Hold the engine to the reference; nothing is left to the core."""
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    rng = np.random.default_rng(0)
    inputs = {info.name: rng.integers(-128, 128, info.array_shape, dtype=np.int8) for info in network.inputs}
    expected = run_network(network, inputs)
    found = execute(compile_layers(network, preset("base"), keep_tensors=True), inputs)
    assert found.keys() >= {info.name for info in network.outputs}
    for name in found.keys() & expected.keys():     # of some tensors not all pixels are computed
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("scales", [(2, 2), (0.5, 0.5), (3, 1.5)])
def test_linear_within_one_level(scales, mode, form, dtype, zero_point):
    model = ModelBuilder(form, seed=4, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 3, 6, 4)), 8, kernel=1)
    y = resized(model, x, [int(6 * scales[0]), int(4 * scales[1])], scales=scales, mode="linear",
                coordinate_transformation_mode=mode)
    on_datapath(assert_layers(model.finish(y)))


@pytest.mark.parametrize(("dim", "sizes"), [((5, 5), (7, 3)), ((1, 4), (4, 4)), ((6, 3), (20, 21))])
def test_any_ratio_within_one_level(dim, sizes):
    model = ModelBuilder("qdq", seed=5, dtype=np.uint8, zero_point=None)
    x = model.conv(model.input((1, 3, *dim)), 4, kernel=1)
    on_datapath(assert_layers(model.finish(resized(model, x, sizes, mode="linear", y_scale=x.scale * 1.3))))


@pytest.mark.parametrize("scales", [(2, 2), (2, 4)])
def test_cubic_within_one_level(scales):
    model = ModelBuilder("qdq", seed=6, zero_point=None)
    x = model.conv(model.input((1, 3, 5, 4)), 8, kernel=1)
    y = resized(model, x, (5 * scales[0], 4 * scales[1]), scales=scales, mode="cubic")
    on_datapath(assert_layers(model.finish(y)))


def test_exact_on_unsigned_integers():
    model = ModelBuilder("qoperator", seed=7, dtype=np.uint8, zero_point=None)
    x = model.conv(model.input((1, 3, 6, 5)), 8, kernel=1)
    network = assert_layers(model.finish(resized(model, x, (12, 10), scales=(2, 2), mode="linear")))
    assert all(layer.exact for layer in network.layers)


def test_exact_where_scales_are_powers_of_two():
    model = ModelBuilder("qdq", seed=8, zero_point=None)
    x = model.input((1, 3, 6, 5))
    halved = model.value(x.shape, np.float32(1 / 64), 3)
    model.quantised(model.node("Relu", [model.dequantised(x)], "real"), halved)
    y = resized(model, halved, (12, 10), scales=(2, 2), mode="linear", y_scale=1 / 32)
    assert all(layer.exact for layer in assert_layers(model.finish(y)).layers)


def test_a_relu_behind_is_part_of_it():
    model = ModelBuilder("qdq", seed=9, zero_point=0)
    x = model.conv(model.input((1, 3, 4, 4)), 8, kernel=1)
    y = model.relu(resized(model, x, (8, 8), scales=(2, 2), mode="linear"))
    network = assert_layers(model.finish(y))
    assert [layer.requantisation.low for layer in network.layers[-4:]] == [0] * 4
    on_datapath(network)


def test_what_the_datapath_lacks_has_a_reason():
    model = ModelBuilder("qdq", seed=10)
    x = model.conv(model.input((1, 3, 4, 4)), 8, kernel=1)
    y = resized(model, x, (8, 8), scales=(2, 2), mode="cubic", exclude_outside=1)
    with pytest.raises(UnsupportedNodeError, match=r"exclude_outside is 1"):
        compile_network(model.finish(y))
