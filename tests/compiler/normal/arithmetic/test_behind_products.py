"""Constants behind a convolution of levels: addends join its bias, factors the scales of its weights."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise

_RNG = np.random.default_rng(13)
_BASE = {"xs": scalar(.02), "xz": zero(3), "ys": scalar(.05), "yz": zero(-4), "ws": scalar(.01), "wz": zero(),
         "w": _RNG.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8), "b": np.arange(8, dtype=np.int32) * 900,
         "bs": scalar(.0002), "bz": zero(0, np.int32)}
_VECTOR = np.float32(_RNG.uniform(-2, 2, (8, 1, 1)))


def _model(*behind, constants=None, bias=False):
    """Return Q, DQ, a Conv, the nodes behind it and Q, DQ; they read "c" and end in "e"."""
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd"),
             node("DequantizeLinear", ["w", "ws", "wz"], "wd"), node("DequantizeLinear", ["b", "bs", "bz"], "bd"),
             node("Conv", ["xd", "wd", *(["bd"] if bias else [])], "c"), *behind,
             node("QuantizeLinear", ["e", "ys", "yz"], "q"), node("DequantizeLinear", ["q", "ys", "yz"], "y")]
    return model(nodes, {**_BASE, **(constants or {})})


def _made(proto, rule):
    """Return the operators of the normal form, whose values are within a level, and equal in nearly all elements."""
    form = normalise(proto)
    assert rule in form.counts
    assert list(faults(form.proto)) == []
    (before,), (after,) = computed(proto), computed(form.proto)
    assert np.abs(before - after).max() <= .0501
    assert (before != after).mean() < .01
    assert len(np.unique(before)) > 20
    assert [layer.kind for layer in assert_layers(form.proto.SerializeToString()).layers] == ["conv"]
    return operators(form.proto)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("op", "inputs"), [("Add", "cv"), ("Add", "vc"), ("Sub", "cv"), ("Add", "c1")])
def test_what_is_added_is_a_bias(op, inputs, bias):
    constants = {"v": _VECTOR, "1": scalar(.7)}
    assert op not in _made(_model(node(op, list(inputs), "e"), constants=constants, bias=bias), "offsets")


def test_what_is_added_to_a_product_of_floats_is_a_bias():
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd"),
             node("Clip", ["xd", "", "most"], "xc"), node("DequantizeLinear", ["w", "ws", "wz"], "wd"),
             node("Conv", ["xc", "wd"], "c"), node("Add", ["c", "v"], "e"),
             node("QuantizeLinear", ["e", "ys", "yz"], "q"), node("DequantizeLinear", ["q", "ys", "yz"], "y")]
    read = {name for each in nodes for name in each.input}
    constants = {name: each for name, each in {**_BASE, "v": _VECTOR, "most": scalar(.713)}.items() if name in read}
    proto = model(nodes, constants)
    form = normalise(proto)
    assert "Add" not in operators(form.proto)
    np.testing.assert_allclose(computed(form.proto)[0], computed(proto)[0], atol=.0501)
    assert_layers(form.proto.SerializeToString())


def test_a_bias_of_levels_that_is_shaped_stays_levels():
    behind = [node("Reshape", ["bd", "shape"], "v"), node("Add", ["c", "v"], "e")]
    proto = _model(*behind, constants={"shape": np.int64([1, 8, 1, 1])})
    assert "Add" not in _made(proto, "offsets")
    form = normalise(proto).proto
    conv = next(each for each in form.graph.node if each.op_type == "Conv")
    assert conv.input[2] not in {each.name for each in form.graph.initializer}


@pytest.mark.parametrize("op", ["Mul", "Div", "BatchNormalization"])
def test_what_multiplies_is_in_the_scales_with_a_note(op):
    constants = {f"p{index}": np.float32(_RNG.uniform(.5, 1.5, 8)) for index in range(4)} | {"v": _VECTOR}
    inputs = ["c", *(f"p{index}" for index in range(4))] if op == "BatchNormalization" else ["c", "v"]
    proto = _model(node(op, inputs, "e"), constants=constants, bias=True)
    assert op not in _made(proto, "factors")
    assert "multiplies by" in normalise(proto).notes[0]


@pytest.mark.parametrize("inputs", ["cv", "vc"])
def test_a_factor_of_one_leaves_a_bias_of_levels(inputs):
    form = normalise(_model(node("Mul", list(inputs), "e"), constants={"v": scalar(1)}, bias=True))
    assert "Mul" not in operators(form.proto)
    assert not form.notes
    conv = next(each for each in form.proto.graph.node if each.op_type == "Conv")
    assert conv.input[2] not in {each.name for each in form.proto.graph.initializer}


@pytest.mark.parametrize("value", [np.zeros((8, 1, 1), np.float32), np.float32(_RNG.uniform(1, 2, (4, 4))),
                                   np.float32([np.inf])], ids=["zero", "each pixel", "infinite"])
def test_other_factors_stay(value):
    assert "factors" not in normalise(_model(node("Mul", ["c", "v"], "e"), constants={"v": value})).counts


def test_sums_that_another_reads_keep_their_operator():
    form = normalise(_model(node("Add", ["c", "v"], "a"), node("Add", ["a", "c"], "e"), constants={"v": _VECTOR}))
    assert "offsets" not in form.counts


@pytest.mark.parametrize("op", ["Mul", "BatchNormalization"])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("scales", [scalar(.01), np.float32(_RNG.uniform(.005, .02, 8))], ids=["one scale", "scales"])
def test_what_multiplies_a_gemm_is_in_the_scales_of_its_columns(op, turned, scales):
    levels = _RNG.integers(-127, 128, (8, 16) if turned else (16, 8)).astype(np.int8)
    constants = {f"p{index}": np.float32(_RNG.uniform(.5, 1.5, 8)) for index in range(4)} | {
        **_BASE, "v": _VECTOR.ravel(), "w": levels, "ws": scales, "wz": np.zeros(scales.shape, np.int8)}
    inputs = ["c", *(f"p{index}" for index in range(4))] if op == "BatchNormalization" else ["c", "v"]
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd"),
             node("DequantizeLinear", ["w", "ws", "wz"], "wd", axis=1 - turned),
             node("Gemm", ["xd", "wd"], "c", transB=turned), node(op, inputs, "e"),
             node("QuantizeLinear", ["e", "ys", "yz"], "q"), node("DequantizeLinear", ["q", "ys", "yz"], "y")]
    assert op not in _made(model(nodes, constants, (5, 16)), "factors")
