"""Quantisation that a file spells out in float arithmetic is a Q and a DQ, to the bit."""

import numpy as np
import pytest
from onnx import TensorProto

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise

_RNG = np.random.default_rng(12)
_FLOAT, _INT8, _UINT8 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8


def _spelled(x, name, zero_point=0, low=-128, high=127, casts=(), divides=True):
    """Return nodes that quantise and dequantise ``x`` by a scale of 1/32, and their constants."""
    shifts = [[("Add", "z")], [("Sub", "z")]] if zero_point else [[], []]
    steps = [("Div", "s") if divides else ("Mul", "inverse"), ("Round", ""), *shifts[0], ("Clip", "low"),
             *(("Cast", kind) for kind in casts), *shifts[1], ("Mul", "s")]
    nodes = []
    for index, (op, beside) in enumerate(steps):
        made = name if index == len(steps) - 1 else f"{name}{index}"
        if op == "Cast":
            nodes.append(node(op, [x], made, to=beside))
        else:
            more = [f"{name}low", f"{name}high"] if op == "Clip" else [f"{name}z"] if beside == "z" else [beside]
            nodes.append(node(op, [x, *(each for each in more if each)], made))
        x = made
    constants = {f"{name}z": np.float32(zero_point), f"{name}low": np.float32(low), f"{name}high": np.float32(high),
                 "s": scalar(1 / 32), "inverse": scalar(32)}
    return nodes, constants


def _same_values(proto, *rules):
    form = normalise(proto)
    assert set(rules) <= set(form.counts)
    assert list(faults(form.proto)) == []
    for before, after in zip(computed(proto), computed(form.proto), strict=True):
        np.testing.assert_array_equal(before, after)
        assert len(np.unique(before)) > 6
    assert normalise(form.proto).counts == {}
    return form.proto


@pytest.mark.parametrize("given", [
    {}, {"divides": False}, {"casts": (_INT8, _FLOAT)}, {"casts": (TensorProto.INT32, _FLOAT)},
    {"casts": (TensorProto.DOUBLE, _FLOAT)},
    {"zero_point": 100, "low": 0, "high": 255}, {"zero_point": -3, "casts": (_INT8, _FLOAT)},
    {"low": -8, "high": 7}, {"low": -127}, {"low": 0, "high": 100}], ids=str)
def test_a_division_that_is_rounded_clipped_and_undone_is_a_q_and_a_dq(given):
    nodes, constants = _spelled("x", "y", **given)
    made = operators(_same_values(model(nodes, constants), "spelled out"))
    assert made[:2] == ["QuantizeLinear", "DequantizeLinear"]
    assert not {"Div", "Round", "Mul"} & {*made}


@pytest.mark.parametrize("given", [
    {"low": -1e6}, {"low": -128.5}, {"casts": (TensorProto.FLOAT16, _FLOAT)},
    {"low": 0, "high": 255, "zero_point": .5}], ids=str)
def test_other_arithmetic_stays(given):
    nodes, constants = _spelled("x", "y", **given)
    assert "Round" in operators(normalise(model(nodes, constants)).proto)


def test_a_product_by_another_number_stays():
    nodes, constants = _spelled("x", "y")
    nodes[-1].input[1] = "other"
    assert "Round" in operators(normalise(model(nodes, {**constants, "other": scalar(.03)})).proto)


@pytest.mark.parametrize("clipped", [True, False])
def test_bytes_that_end_a_model_are_levels(clipped):
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
             node("Clip", ["d", "none", "one"], "c"), node("Mul", ["c", "most"], "m"), node("Round", ["m"], "r"),
             *([node("Clip", ["r", "none", "most"], "b")] if clipped else []),
             node("Cast", ["b" if clipped else "r"], "y", to=_UINT8)]
    constants = {"s": scalar(1 / 64), "z": zero(), "none": scalar(0), "one": scalar(1), "most": scalar(255)}
    proto = model(nodes, constants, out="uint8")
    assert operators(_same_values(proto, "spelled out"))[-1] == "QuantizeLinear"
    assert [layer.kind for layer in assert_layers(proto.SerializeToString()).layers] == ["pass"]


def test_a_network_that_is_quantised_in_arithmetic_runs_on_the_datapath():
    first, constants = _spelled("x", "a")
    last, others = _spelled("c", "y", low=0, high=255, zero_point=128)
    levels = _RNG.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8)
    nodes = [*first, node("Cast", ["w"], "f", to=_FLOAT), node("Mul", ["f", "ws"], "weights"),
             node("Conv", ["a", "weights"], "c"), *last]
    proto = model(nodes, {**constants, **others, "w": levels, "ws": np.float32(_RNG.uniform(.001, .002, (8, 1, 1, 1)))})
    assert [layer.kind for layer in assert_layers(proto.SerializeToString()).layers] == ["conv"]


@pytest.mark.parametrize("zero_point", [0, 7])
def test_levels_that_are_cast_and_multiplied_are_dequantised(zero_point):
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("Cast", ["q"], "f", to=_FLOAT),
             *([node("Sub", ["f", "shift"], "d")] if zero_point else []),
             node("Mul", ["d" if zero_point else "f", "s"], "y")]
    constants = {"s": scalar(1 / 32), "z": zero(zero_point), "shift": np.float32(zero_point)}
    made = operators(_same_values(model(nodes, constants), "spelled out"))
    assert made == ["QuantizeLinear", "DequantizeLinear"]
