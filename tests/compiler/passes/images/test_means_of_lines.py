"""A mean over rows, and one over what is left, are two averages: the shape between them is no work of the core."""

from tests.compiler.normal.graphs import model, node, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.network.layers import CoreLayer

_BASE = {"xs": scalar(.02), "xz": zero(3)}


def _quantised(name: str, to: str):
    return [node("QuantizeLinear", [name, "xs", "xz"], f"{to}q"), node("DequantizeLinear", [f"{to}q", "xs", "xz"], to)]


def test_the_mean_of_a_mean_is_not_left_in_float():
    nodes = [*_quantised("x", "a"), node("ReduceMean", ["a"], "m", axes=[2], keepdims=0), *_quantised("m", "b"),
             node("GlobalAveragePool", ["b"], "g"), *_quantised("g", "y")]
    network = assert_layers(model(nodes, _BASE, opset=17).SerializeToString())
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
    assert len(network.layers) == 2
