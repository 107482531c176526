"""Forms one step beside the plain one: their values do not change, and they take the cycles of their plain twins."""

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.isa.machine import preset
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report

_RNG = np.random.default_rng(21)
_IMAGE, _LINE = (1, 8, 12, 12), (1, 8, 40)
_MOST = 1.05


def _levels(*shape):
    return _RNG.integers(-127, 128, shape).astype(np.int8)


_GIVEN = {"xs": scalar(.03), "ws": scalar(.004), "ys": scalar(.05), "z": zero(), "zu": zero(3, np.uint8),
          "w": _levels(16, 8, 3, 3), "v": _levels(8, 16, 1, 1), "line": _levels(16, 8, 5), "dense": _levels(24, 32),
          "narrow": scalar(.6), "z4": np.array(-2, ml_dtypes.int4), "u4": np.array(3, ml_dtypes.uint4),
          "row": np.array([2], np.int64), "pads": np.array([1, 1, 1, 1], np.int64), "axes": np.array([2, 3], np.int64),
          "around": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), "one": np.float32([.7]),
          "many": np.full(24, .7, np.float32), "volume": _levels(16, 8, 3, 3, 3), "point": _levels(8, 16, 1, 1, 1),
          "deep": _levels(8, 4, 1, 1), "six": np.array([1, 4, 2, 2, 12, 12]), "six2": np.array([0, 2, 2, 4, 12, -1]),
          "parts": np.array([1, 8, 6, 2, 6, 2]), "large": np.array([1, 4, 24, -1]), "small": np.array([1, 32, 6, 6]),
          "thick": _levels(8, 32, 1, 1), "columns": _levels(32, 24), "dims": np.array([1, 2, 3, 24]),
          "each": np.linspace(-1, 1, 16, dtype=np.float32)[:, None], "gain": np.linspace(.5, 2, 16, dtype=np.float32),
          "shift": np.linspace(-.2, .2, 16, dtype=np.float32)}
_GIVEN["slice"] = _GIVEN["volume"][:, :, 1]


def _pair(value, scale, point, name):
    return [node("QuantizeLinear", [value, scale, point], f"{name}:q"),
            node("DequantizeLinear", [f"{name}:q", scale, point], name)]


def _network(*nodes, shape=_IMAGE, last="y:real"):
    """Return a model of ``nodes`` behind a quantised ``x``, with the weights that they name dequantised."""
    names = {each for written in nodes for each in written.input}
    weights = [node("DequantizeLinear", [each, "ws", "z"], f"{each}d") for each in _GIVEN if f"{each}d" in names]
    return _model([*_pair("x", "xs", "z", "xd"), *weights, *nodes, *_pair(last, "ys", "z", "y")], shape)


def _model(nodes, shape):
    """Return a model of ``nodes`` with the constants that they read."""
    read = {each for written in nodes for each in written.input}
    return model(nodes, {name: value for name, value in _GIVEN.items() if name in read}, shape)


def _conv(x="xd", out="c", **attributes):
    return [node("Conv", [x, "wd"], f"{out}:sum", **{"pads": [1] * 4, **attributes}),
            node("Relu", [f"{out}:sum"], out)]


def _behind(x):
    return node("Conv", [x, "vd"], "y:real")


_PLAIN = _network(*_conv(), *_pair("c", "ys", "z", "cd"), _behind("cd"))
_TO_LINE = [node("Unsqueeze", ["xd", "row"], "image"), node("Unsqueeze", ["lined", "row"], "flat")]
_PADDED = _conv("padded", pads=[0] * 4)

_VOLUME, _EVEN = (1, 8, 1, 12, 12), (1, 16, 12, 12)
_DEEP, _THICK = ((*_pair("shuffled", "xs", "z", "image"), node("Conv", ["image", f"{each}d"], "y:real"))
                 for each in ("deep", "thick"))


def _shuffled(first, turn, second):
    return [node("Reshape", ["xd", first], "a"), node("Transpose", ["a"], "b", perm=turn),
            node("Reshape", ["b", second], "shuffled")]


def _shuffle(op, **attributes):
    return node(op, ["xd"], "shuffled", blocksize=2, **attributes)


_TWINS = {
    "a volume of depth one": ("volumes", _network(
        node("Conv", ["xd", "volumed"], "s", pads=[1] * 6), node("Relu", ["s"], "c"), *_pair("c", "ys", "z", "cd"),
        node("Conv", ["cd", "pointd"], "y:real"), shape=_VOLUME), _network(
        node("Conv", ["xd", "sliced"], "s", pads=[1] * 4), node("Relu", ["s"], "c"), *_pair("c", "ys", "z", "cd"),
        _behind("cd"))),
    "a volume padded on one side": ("volumes", _network(
        node("Conv", ["xd", "volumed"], "y:real", pads=[0, 1, 1, 2, 1, 1]), shape=_VOLUME), None),
    "pixels of PyTorch": ("shuffles", _network(*_shuffled("six", [0, 1, 4, 2, 5, 3], "large"), *_DEEP, shape=_EVEN),
                          _network(_shuffle("DepthToSpace", mode="CRD"), *_DEEP, shape=_EVEN)),
    "pixels of ONNX": ("shuffles", _network(*_shuffled("six2", [0, 3, 4, 1, 5, 2], "large"), *_DEEP, shape=_EVEN),
                       _network(_shuffle("DepthToSpace"), *_DEEP, shape=_EVEN)),
    "pixels to channels": ("shuffles", _network(*_shuffled("parts", [0, 3, 5, 1, 2, 4], "small"), *_THICK),
                           _network(_shuffle("SpaceToDepth"), *_THICK)),
    "activations of int4": ("narrow", _network(*_conv(), *_pair("c", "narrow", "z4", "cd"), _behind("cd")), _PLAIN),
    "activations of uint4": ("narrow", _network(*_conv(), *_pair("c", "narrow", "u4", "cd"), _behind("cd")), _PLAIN),
    "uint4 beside uint8": ("narrow", _model(
        [node("QuantizeLinear", ["x", "xs", "zu"], "xq"), node("DequantizeLinear", ["xq", "xs", "zu"], "xd"),
         node("DequantizeLinear", ["w", "ws", "z"], "wd"), *_conv(), *_pair("c", "narrow", "u4", "cd"),
         node("DequantizeLinear", ["v", "ws", "z"], "vd"), _behind("cd"), *_pair("y:real", "ys", "zu", "y")],
        _IMAGE), _PLAIN),
    "a function behind a move": ("functions", _network(
        *_TO_LINE, node("Conv", ["image", "flat"], "s", pads=[0, 2, 0, 2]), node("Squeeze", ["s", "row"], "r"),
        node("Relu", ["r"], "y:real"), shape=_LINE), _network(
        node("Conv", ["xd", "lined"], "s", pads=[2, 2]), node("Relu", ["s"], "y:real"), shape=_LINE)),
    "a constant behind a move": ("functions", _network(
        *_TO_LINE, node("Conv", ["image", "flat"], "s", pads=[0, 2, 0, 2]), node("Squeeze", ["s", "row"], "r"),
        node("Add", ["each", "r"], "y:real"), shape=_LINE), _network(
        node("Conv", ["xd", "lined"], "s", pads=[2, 2]), node("Add", ["s", "each"], "y:real"), shape=_LINE)),
    "a normalisation behind a move": ("functions", _network(
        *_TO_LINE, node("Conv", ["image", "flat"], "s", pads=[0, 2, 0, 2]), node("Squeeze", ["s", "row"], "r"),
        node("BatchNormalization", ["r", "gain", "shift", "shift", "gain"], "y:real"), shape=_LINE), _network(
        node("Conv", ["xd", "lined"], "s", pads=[2, 2]),
        node("BatchNormalization", ["s", "gain", "shift", "shift", "gain"], "y:real"), shape=_LINE)),
    "a row behind a move": ("functions", _network(
        node("MatMul", ["xd", "columnsd"], "s"), node("Reshape", ["s", "dims"], "r"),
        node("Add", ["r", "many"], "y:real"), shape=(1, 6, 32)), _network(
        node("MatMul", ["xd", "columnsd"], "s"), node("Add", ["s", "many"], "y:real"), shape=(1, 6, 32))),
    "a Pad that nothing quantises": ("inside", _network(
        node("Pad", ["xd", "pads", "", "axes"], "padded"), *_PADDED, *_pair("c", "ys", "z", "cd"), _behind("cd")),
        _PLAIN),
    "a bias of one number": ("biases", _network(
        node("Gemm", ["xd", "densed", "one"], "y:real", transB=1), shape=(3, 32)), _network(
        node("Gemm", ["xd", "densed", "many"], "y:real", transB=1), shape=(3, 32))),
    "the least of two": ("mirrored", _network(
        *_conv(), *_pair("c", "ys", "z", "cd"), *_conv(out="d", dilations=[2, 2], pads=[2] * 4),
        *_pair("d", "ys", "z", "dd"), node("Min", ["cd", "dd"], "y:real")), None),
    "the least of two scales": ("mirrored", _network(
        *_conv(), *_pair("c", "ys", "z", "cd"), *_conv(out="d", dilations=[2, 2], pads=[2] * 4),
        *_pair("d", "xs", "z", "dd"), node("Min", ["cd", "dd"], "y:real")), None),
    "the least of an image": ("mirrored", _network(node("ReduceMin", ["xd", "row"], "y:real")), None),
    "a reflected Pad": ("inside", _network(node("Pad", ["xd", "around"], "padded", mode="reflect"), *_PADDED, *_pair(
        "c", "ys", "z", "cd"), _behind("cd")), None),
}


@pytest.mark.parametrize("case", _TWINS)
def test_no_value_changes_and_the_datapath_computes_it(case):
    rule, proto, plain = _TWINS[case]
    form = normalise(proto)
    assert rule in form.counts
    assert list(faults(form.proto)) == []
    (before,), (after,) = computed(proto), computed(form.proto)
    np.testing.assert_array_equal(after, before)
    assert len(np.unique(before)) > 6
    assert normalise(form.proto).counts == {}
    cycles = _cycles(proto)
    if plain is not None:
        assert cycles <= _MOST * _cycles(plain)


def _cycles(proto):
    """Return the predicted cycles of a model that the datapath computes, all of it."""
    compiled = compile_layers(assert_layers(proto.SerializeToString()), preset("base"))
    report = predict_report(job_of_compiled(compiled, "twin"))
    assert report.core_share.layers == 0
    return report.cycles


def test_pads_with_a_number_that_is_no_level_stay_in_float():
    proto = _network(node("Pad", ["xd", "around", "one"], "padded"), *_PADDED, *_pair("c", "ys", "z", "cd"),
                     _behind("cd"))
    assert "inside" not in normalise(proto).counts
