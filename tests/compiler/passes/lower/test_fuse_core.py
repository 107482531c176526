"""Functions of a quantised tensor whose result stays float are one look-up on the host core, of the same bits."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.graph.rewrite import PassPipeline
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.onnx.reader import load
from tilewright.compiler.passes.lower.build_layers import build_network
from tilewright.compiler.passes.lower.fuse_core import FuseCore
from tilewright.compiler.passes.pass_order import PASSES

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def networks(model, shape, *outputs):
    """Return the network of ``model`` with these float outputs, and the same with nothing fused on the core."""
    model.outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs]
    graph = load(model.proto().SerializeToString())
    plain = tuple(each for each in PASSES if not isinstance(each, FuseCore))
    return tuple(build_network(PassPipeline(passes)(graph)) for passes in (PASSES, plain))


def core(network):
    return [layer.op for layer in network.layers if isinstance(layer, CoreLayer)]


def assert_same(fused, plain):
    """Hold the outputs of both networks to each other, bit for bit."""
    rng = np.random.default_rng(1)
    given = {info.name: rng.integers(-128, 128, info.array_shape, np.int8) for info in plain.inputs}
    ours, theirs = run_network(fused, given), run_network(plain, given)
    for info in plain.outputs:
        assert ours[info.name].tobytes() == theirs[info.name].tobytes()


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
@pytest.mark.parametrize("shape", [(1, 4, 5, 3), (1, 12), (1, 3, 7)])
def test_a_chain_is_one_look_up(dtype, zero_point, shape):
    model = ModelBuilder("qdq", seed=3, dtype=dtype, zero_point=zero_point)
    x = model.input(shape)
    first = model.dequantised(x)
    gate = model.node("Sigmoid", [first], "gate")
    model.node("Exp", [model.node("Add", [model.node("Mul", [first, gate], "silu"),
                                          model.constant(np.float32(0.5))], "more")], "end")
    fused, plain = networks(model, shape, "end")
    assert core(fused) == ["LookUp"]
    assert len(core(plain)) == 5
    assert_same(fused, plain)


def test_what_is_read_elsewhere_has_a_look_up_of_its_own():
    model = ModelBuilder("qdq", seed=4)
    x = model.input((1, 4, 5, 3))
    gate = model.node("Sigmoid", [model.dequantised(x)], "gate")
    model.node("Neg", [gate], "end")
    fused, plain = networks(model, x.shape, "end", "gate")
    assert core(fused) == ["LookUp", "LookUp"]
    assert_same(fused, plain)


def test_functions_of_two_tensors_and_of_vectors_stay():
    model = ModelBuilder("qdq", seed=5)
    x, y = model.input((1, 4, 5, 3)), model.input((1, 4, 5, 3))
    model.node("Mul", [model.dequantised(x), model.dequantised(y)], "product")
    channels = model.constant(np.array([0.5, 1, 2, 1], np.float32).reshape(4, 1, 1))
    model.node("PRelu", [model.dequantised(x), channels], "slopes")
    fused, plain = networks(model, x.shape, "product", "slopes")
    assert "LookUp" not in core(fused)
    assert core(fused) == core(plain)
