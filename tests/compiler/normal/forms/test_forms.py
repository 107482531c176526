"""Operators that others define, products the other way round, constants among levels: alike, and off the host core."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import FORMS, normalise

_RNG = np.random.default_rng(34)
_STEP = .08
_SCALES = {"xs": scalar(.03), "ws": scalar(.01), "ys": scalar(_STEP), "z": zero(),
           "bs": scalar(.0003), "bz": np.zeros((), np.int32)}
_MS = "com.microsoft"


def _levels(*shape):
    return _RNG.integers(-127, 128, shape).astype(np.int8)


def _model(nodes, shape, weights=(), **given):
    """Return ``nodes`` between a Q and DQ of ``x``, as ``xd``, and those of their last result; weights are ``wd``."""
    nodes = [node("QuantizeLinear", ["x", "xs", "z"], "xq"), node("DequantizeLinear", ["xq", "xs", "z"], "xd"),
             *([node("DequantizeLinear", ["w", "ws", "z"], "wd")] if weights else []),
             *([node("DequantizeLinear", ["b", "bs", "bz"], "bd")] if "b" in given else []), *nodes]
    nodes += [node("QuantizeLinear", [nodes[-1].output[0], "ys", "z"], "yq"),
              node("DequantizeLinear", ["yq", "ys", "z"], "y")]
    constants = {**_SCALES, **given, **({"w": _levels(*weights)} if weights else {})}
    opset = constants.pop("opset", 21)
    return model(nodes, constants, shape, opset=opset)


def _einsum(equation, shape, weights=(), others=("xd", "wd"), before=()):
    return _model([*before, node("Einsum", list(others if weights or before else others[:1]), "e", equation=equation)],
                  shape, weights)


def _stacked(axis, _flat=()):
    """Return the weighted sum of two branches that a new axis holds; it stays until a Reshape to ``_flat``."""
    nodes = [node("Relu", ["xd"], "r"), node("Unsqueeze", ["xd", "at"], "u"), node("Unsqueeze", ["r", "at"], "v"),
             node("Concat", ["u", "v"], "c", axis=axis), node("QuantizeLinear", ["c", "xs", "z"], "cq"),
             node("DequantizeLinear", ["cq", "xs", "z"], "cd"),
             node("ReduceSum", ["cd", "at"], "s", keepdims=int(bool(_flat)))]
    if _flat:
        nodes += [node("QuantizeLinear", ["s", "ys", "z"], "sq"), node("DequantizeLinear", ["sq", "ys", "z"], "sd"),
                  node("Reshape", ["sd", "flat"], "f")]
    return _model(nodes, (1, 8, 6, 6), at=np.int64([axis]), **({"flat": np.int64(_flat)} if _flat else {}))


_BIAS = np.arange(8, dtype=np.int32) * 40
_TURN = node("Transpose", ["xd"], "t", perm=[0, 2, 3, 1])
_GRID = np.linspace(-1, 1, 36, dtype=np.float32).reshape(1, 1, 6, 6)
_MASK = _RNG.integers(0, 2, (1, 1, 6, 6)).astype(np.bool_)
_IMAGE, _ROWS = (1, 4, 6, 6), (6, 16)
_PAIR_OF_R = (node("QuantizeLinear", ["r", "ys", "z"], "rq"), node("DequantizeLinear", ["rq", "ys", "z"], "rd"))
_CASES = {
    "a 1x1 convolution": ("einsum", _einsum("bchw,oc->bohw", _IMAGE, (8, 4))),
    "channels last": ("einsum", _einsum("bhwc,cd->bhwd", (1, 6, 6, 4), (4, 8))),
    "heads joined": ("einsum", _einsum("bthd,hdo->bto", (1, 6, 2, 8), (2, 8, 12))),
    "heads apart": ("einsum", _einsum("btc,chd->bthd", (1, 6, 16), (16, 2, 8))),
    "the constant first": ("einsum", _einsum("oc,bct", (1, 16, 6), (8, 16), ("wd", "xd"))),
    "two computed": ("einsum", _einsum("bhqd,bhkd->bhqk", (1, 2, 6, 8), others=("xd", "xd"), before=[
        node("Identity", ["xd"], "i")])),
    "two computed, the keys first": ("einsum", _einsum("aecd,abcd->acbe", (1, 6, 2, 8), others=("xd", "xd"), before=[
        node("Identity", ["xd"], "i")])),
    "a sum": ("einsum", _einsum("bchw->bc", _IMAGE)),
    "FusedConv": ("fused", _model([node("FusedConv", ["xd", "wd", "bd"], "f", _MS, activation="Clip",
                                        activation_params=[0., 6.])], _IMAGE, (8, 4, 3, 3), b=_BIAS)),
    "FusedGemm": ("fused", _model([node("FusedGemm", ["xd", "wd", "bd"], "f", _MS, transB=1, activation="Relu")],
                                  (1, 16), (8, 16), b=_BIAS)),
    "FusedMatMul": ("fused", _model([node("FusedMatMul", ["xd", "wd"], "f", _MS, transB=1, alpha=.5)], _ROWS, (8, 16))),
    "FastGelu": ("fused", _model([node("FastGelu", ["xd"], "f", _MS)], _IMAGE, opset=17)),
    "BiasGelu": ("fused", _model([_TURN, node("BiasGelu", ["t", "k"], "f", _MS)], (1, 1, 6, 6),
                                 k=np.float32([.25]))),
    "a MatMul by a constant": ("turned products", _model([node("MatMul", ["wd", "xd"], "m")], (16, 6), (7, 16))),
    "with a column": ("turned products", _model([node("MatMul", ["wd", "xd"], "m"), node("Add", ["m", "k"], "a")],
                                                (16, 6), (7, 16), k=np.linspace(-1, 1, 7, dtype=np.float32)[:, None])),
    "a Gemm by a constant": ("turned products", _model([node("Gemm", ["wd", "xd"], "m", transB=1)], _ROWS, (7, 16))),
    "a vector": ("turned products", _model([node("MatMul", ["xd", "wd"], "m")], (6, 16), (16,))),
    "a vector of bins": ("turned products", _model([node("MatMul", ["xd", "wd"], "m")], (1, 40, 4, 16), (16,))),
    "transA": ("turned products", _model([node("Gemm", ["xd", "wd", "bd"], "m", transA=1, transB=1)], (16, 1), (8, 16),
                                         b=_BIAS)),
    "alpha and beta": ("gains", _model([node("Gemm", ["xd", "wd", "bd"], "m", transB=1, alpha=.5, beta=2.)], _ROWS,
                                       (8, 16), b=_BIAS)),
    "a mask": ("masks", _model([node("Where", ["m", "xd", "k"], "m1")], _IMAGE, m=_MASK, k=scalar(1.5))),
    "a mask that keeps no minus infinity": ("masks", _model([node("Where", ["m", "k", "xd"], "m1")], _IMAGE, m=_MASK,
                                                            k=scalar(-np.inf))),
    "coordinates": ("parts", _model([node("Concat", ["xd", "k"], "j", axis=1)], _IMAGE, k=_GRID)),
    "a row before": ("parts", _model([node("Concat", ["k", "xd"], "j", axis=2)], _IMAGE,
                                     k=_RNG.standard_normal((1, 4, 1, 6)).astype(np.float32))),
    "two stacked": ("stacked", _stacked(1)),
    "the sum of two": ("stacked", _model([node("Relu", ["xd"], "r"), *_PAIR_OF_R, node("Sum", ["xd", "rd"], "s")],
                                         _IMAGE)),
    "the sum with what is negated": ("signs", _model([
        node("Relu", ["xd"], "r"), *_PAIR_OF_R, node("Neg", ["rd"], "n"), node("Add", ["n", "xd"], "s")], _IMAGE)),
    "the difference from what is negated": ("signs", _model([
        node("Relu", ["xd"], "r"), *_PAIR_OF_R, node("Neg", ["rd"], "n"), node("Sub", ["xd", "n"], "s")], _IMAGE)),
    "weights that Max bounds": ("constants", _model([
        node("Max", ["k", "least"], "b"), node("DequantizeLinear", ["b", "ws", "z"], "bd"),
        node("MatMul", ["xd", "bd"], "m")], _ROWS, k=_levels(16, 8), least=zero(-128))),
    "the channels of pixels": ("pixel products", _model([
        _TURN, node("MatMul", ["t", "wd"], "m"), node("Add", ["bd", "m"], "a"), node("Relu", ["a"], "r"),
        node("Transpose", ["r"], "u", perm=[0, 3, 1, 2])], _IMAGE, (4, 8), b=_BIAS)),
    "the mean with a picture": ("halves", _model([node("Mean", ["k", "xd"], "s")], _IMAGE,
                                                 k=_RNG.standard_normal(_IMAGE).astype(np.float32))),
    "the mean of two": ("halves", _model([node("Relu", ["xd"], "r"), *_PAIR_OF_R, node("Mean", ["rd", "xd"], "s")],
                                         _IMAGE)),
    "twice the mean of two": ("halves", _model([
        node("Relu", ["xd"], "r"), *_PAIR_OF_R, node("Mean", ["rd", "xd"], "s"), node("Mul", ["s", "k"], "t")], _IMAGE,
        k=scalar(2))),
    "a quarter of a difference": ("halves", _model([
        node("Relu", ["xd"], "r"), *_PAIR_OF_R, node("Sub", ["rd", "xd"], "s"), node("Mul", ["k", "s"], "t")], _IMAGE,
        k=scalar(.25))),
    "two stacked, their axis kept": ("stacked", _stacked(1, _flat=(1, 8, 6, 6))),
    "one of each pair of channels": ("stacked", _stacked(2)),
    "the largest, read twice": ("inside", _model([
        node("Relu", ["xd"], "r"), node("QuantizeLinear", ["r", "xs", "z"], "rq"),
        node("DequantizeLinear", ["rq", "xs", "z"], "rd"), node("Max", ["xd", "rd"], "m"),
        node("MaxPool", ["m"], "p", kernel_shape=[1, 1]), node("QuantizeLinear", ["p", "ps", "z"], "pq"),
        node("DequantizeLinear", ["pq", "ps", "z"], "pd"), node("QuantizeLinear", ["m", "ys", "z"], "mq"),
        node("DequantizeLinear", ["mq", "ys", "z"], "md"), node("Add", ["pd", "md"], "a")],
        _IMAGE, ps=np.float32(.03))),
    "in the middle": ("parts", _model([node("MaxPool", ["xd"], "p", kernel_shape=[1, 1]),
                                       node("Concat", ["xd", "k", "p"], "j", axis=1)], _IMAGE, k=_GRID)),
}


@pytest.mark.parametrize("case", _CASES)
def test_the_datapath_computes_it_and_no_value_changes(case):
    rule, proto = _CASES[case]
    form = normalise(proto)
    assert rule in form.counts
    assert list(faults(form.proto)) == []
    (before,), (after,) = computed(proto), computed(form.proto)
    assert before.shape == after.shape
    np.testing.assert_allclose(after, before, atol=_STEP * 1.01)    # sums in float may be rounded to either side
    assert (before != after).mean() < .02
    assert normalise(form.proto).counts == {}
    network = assert_layers(form.proto.SerializeToString())
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


def test_the_columns_of_a_result_are_those_of_the_second_operand():
    form = normalise(_CASES["two computed, the keys first"][1])
    assert [*operators(form.proto)][-3:] == ["MatMul", "QuantizeLinear", "DequantizeLinear"]


def test_a_factor_that_is_no_power_of_two_is_noted():
    nodes = [node("Gemm", ["xd", "wd"], "m", transB=1, alpha=.3)]
    assert "rounded once more" in " ".join(normalise(_model(nodes, _ROWS, (8, 16))).notes)


def test_a_float_model_is_rewritten_before_it_is_quantised():
    proto = model([node("Einsum", ["x", "w"], "e", equation="bchw,oc->bohw"), node("FastGelu", ["e"], "y", _MS)],
                  {"w": _RNG.standard_normal((8, 4)).astype(np.float32)}, opset=17)
    form = normalise(proto)
    assert {*form.counts} <= {rule.name for rule in FORMS}
    assert not {"Einsum", "FastGelu"} & {*operators(form.proto)}
    np.testing.assert_allclose(computed(form.proto)[0], computed(proto)[0], atol=1e-4)


@pytest.mark.parametrize("proto", [
    _einsum("bii->bi", (1, 6, 6)), _einsum("...c->...", (1, 6, 6)),
    _model([node("Concat", ["xd", "k"], "j", axis=1)], _IMAGE, k=np.full((1, 1, 6, 6), np.nan, np.float32)),
    _model([node("Gemm", ["xd", "wd"], "m", transB=1, alpha=-1.)], _ROWS, (8, 16)),
], ids=["a diagonal", "an ellipsis", "no number", "a negative factor"])
def test_what_no_rule_covers_stays(proto):
    assert not {"einsum", "parts", "gains"} & {*normalise(proto).counts}
