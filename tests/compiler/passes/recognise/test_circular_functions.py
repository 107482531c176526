"""Circular and hyperbolic functions, and their inverses, are tables between levels."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import model, node, scalar, zero
from tests.support.exactness import assert_layers


@pytest.mark.parametrize("name", ["Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"])
def test_a_function_of_levels_is_a_table(name):
    """Its arguments are those where it is finite."""
    low, scale = (zero(-128), 1 / 64) if name == "Acosh" else (zero(), 1 / 130)
    weights = np.zeros((4, 4, 1, 1), np.int8)
    weights[range(4), range(4)] = 127
    shift = scalar(1.0 if name == "Acosh" else 0.0)
    proto = model([
        node("QuantizeLinear", ["x", "xs", "z"], "xq"), node("DequantizeLinear", ["xq", "xs", "z"], "xd"),
        node("DequantizeLinear", ["w", "ws", "z"], "wd"), node("Conv", ["xd", "wd"], "c"),
        node("QuantizeLinear", ["c", "cs", "low"], "cq"), node("DequantizeLinear", ["cq", "cs", "low"], "cd"),
        node("Add", ["cd", "shift"], "moved"), node(name, ["moved"], "f"),
        node("QuantizeLinear", ["f", "ys", "z"], "yq"), node("DequantizeLinear", ["yq", "ys", "z"], "y")],
        {"xs": scalar(.01), "ws": scalar(.01), "cs": scalar(scale), "ys": scalar(.02), "z": zero(), "low": low,
         "w": weights, "shift": shift})
    network = assert_layers(proto.SerializeToString())
    assert {layer.kind for layer in network.layers} <= {"conv", "act"}
