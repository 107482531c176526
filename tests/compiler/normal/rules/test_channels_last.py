"""Models with channels last, as sessions of ONNX Runtime write them, have channels first in normal form."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.compiler.passes.pass_order import compile_network

_RNG = np.random.default_rng(11)
_UINT8 = {"xs": scalar(2**-5), "xz": zero(120, np.uint8), "ys": scalar(2**-2), "yz": zero(131, np.uint8),
          "ws": scalar(2**-7), "wz": zero()}


def _made(proto, *rules):
    """Return the operators of the normal form, which must be legal, made by ``rules`` and give the same values."""
    form = normalise(proto)
    assert set(rules) <= set(form.counts)
    assert list(faults(form.proto)) == []
    for before, after in zip(computed(proto), computed(form.proto), strict=True):
        np.testing.assert_array_equal(before, after)
        assert len(np.unique(before)) > 6
    assert normalise(form.proto).counts == {}
    return operators(form.proto)


@pytest.mark.parametrize("shape", [(1, 4, 12), (1, 4, 6, 6)])
@pytest.mark.parametrize("pooled", [False, True])
def test_convolutions_and_averages_with_channels_last_take_the_rank_of_their_weights(shape, pooled):
    window = [3] * (len(shape) - 2)
    last, first = [0, *range(2, len(shape)), 1], [0, len(shape) - 1, *range(1, len(shape) - 1)]
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("Transpose", ["q"], "t", perm=last),
             node("QLinearConv", ["t", "xs", "xz", "w", "ws", "wz", "ys", "yz"], "c", "com.microsoft", channels_last=1,
                  kernel_shape=window)]
    if pooled:
        nodes.append(node("QLinearGlobalAveragePool", ["c", "ys", "yz", "xs", "xz"], "a", "com.microsoft",
                          channels_last=1))
    nodes += [node("Transpose", ["a" if pooled else "c"], "u", perm=first),
              node("DequantizeLinear", ["u", *(("xs", "xz") if pooled else ("ys", "yz"))], "y")]
    # Of 7 bits, so that two products stay within 16 bits: ONNX Runtime saturates them on processors without VNNI.
    levels = _RNG.integers(-63, 64, (16, 4, *window)).astype(np.int8)
    made = _made(model(nodes, {**_UINT8, "w": levels}, shape), "expand", "idle")
    assert "Transpose" not in made
    assert made.count("Conv") == 1
    assert made.count("GlobalAveragePool") == int(pooled)


@pytest.mark.parametrize("given", [{}, {"pads": [1, 0, 1, 1], "strides": [2, 1]}, {"ceil_mode": 1, "strides": [2, 2]}])
def test_maxima_with_channels_last_are_max_pool(given):
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("Transpose", ["q"], "t", perm=[0, 2, 3, 1]),
             node("NhwcMaxPool", ["t"], "p", "com.microsoft", kernel_shape=[2, 3], **given),
             node("Transpose", ["p"], "u", perm=[0, 3, 1, 2]), node("DequantizeLinear", ["u", "xs", "xz"], "y")]
    made = _made(model(nodes, _UINT8), "expand", "idle")
    assert made.count("MaxPool") == 1
    assert "Transpose" not in made


@pytest.mark.parametrize("given", [["", "f"], ["", "", "s"]])
def test_transposes_around_a_resize_go_and_its_factors_change_places(given):
    constants = {**_UINT8, "f": np.float32([1, 2, 3, 1]), "s": np.int64([1, 12, 18, 4])}
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("Transpose", ["q"], "t", perm=[0, 2, 3, 1]),
             node("Resize", ["t", *given], "r", mode="nearest", nearest_mode="floor",
                  coordinate_transformation_mode="asymmetric"),
             node("DequantizeLinear", ["r", "xs", "xz"], "d"), node("Transpose", ["d"], "u", perm=[0, 3, 1, 2]),
             node("Relu", ["u"], "y")]
    made = _made(model(nodes, constants), "turns")
    assert "Transpose" not in made


@pytest.mark.parametrize("back", [[0, 2, 3, 1], None])
def test_transposes_that_do_not_undo_each_other_stay(back):
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("Transpose", ["q"], "t", perm=[0, 2, 3, 1]),
             node("DequantizeLinear", ["t", "xs", "xz"], "d"),
             *([node("Transpose", ["d"], "u", perm=back)] if back else []),
             node("Relu", ["u" if back else "d"], "y")]
    form = normalise(model(nodes, _UINT8))
    assert "turns" not in form.counts
    assert "Transpose" in operators(form.proto)


def test_a_turned_tensor_that_another_reads_keeps_its_transpose():
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("Transpose", ["q"], "t", perm=[0, 2, 3, 1]),
             node("DequantizeLinear", ["t", "xs", "xz"], "d"), node("Transpose", ["d"], "u", perm=[0, 3, 1, 2]),
             node("Relu", ["u"], "y"), node("Flatten", ["d"], "z")]
    form = normalise(model(nodes, _UINT8, outputs=("y", "z")))
    assert "turns" not in form.counts


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_a_softmax_goes_along_what_a_transpose_behind_it_makes_channels(op):
    constants = {**_UINT8, "ys": scalar(2**-8 if op == "Softmax" else 2**-3), "yz": zero(0 if op == "Softmax" else 250,
                                                                                         np.uint8)}
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("DequantizeLinear", ["q", "xs", "xz"], "d"),
             node(op, ["d"], "s", axis=2), node("QuantizeLinear", ["s", "ys", "yz"], "r"),
             node("Transpose", ["r"], "t", perm=[0, 2, 1, 3]), node("DequantizeLinear", ["t", "ys", "yz"], "y")]
    made = _made(model(nodes, constants), "turns")
    assert made.index("Transpose") < made.index(op)


@pytest.mark.parametrize(("axis", "perm"), [(1, [0, 2, 1, 3]), (3, [0, 2, 1, 3])])
def test_a_softmax_along_other_axes_keeps_the_transpose_behind_it(axis, perm):
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("DequantizeLinear", ["q", "xs", "xz"], "d"),
             node("Softmax", ["d"], "s", axis=axis), node("Transpose", ["s"], "t", perm=perm),
             node("QuantizeLinear", ["t", "ys", "yz"], "r"), node("DequantizeLinear", ["r", "ys", "yz"], "y")]
    assert "turns" not in normalise(model(nodes, _UINT8)).counts


@pytest.mark.parametrize(("axis", "perm"), [(1, [0, 2, 3, 1]), (-1, [0, 2, 1, 3])])
def test_levels_are_turned_before_a_softmax_whose_result_is_float(axis, perm):
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "q"), node("DequantizeLinear", ["q", "xs", "xz"], "d"),
             node("Softmax", ["d"], "s", axis=axis), node("Transpose", ["s"], "y", perm=perm)]
    proto = model(nodes, _UINT8, (1, 4, 6, 8))
    form = normalise(proto)
    assert form.counts["turns"] == 1
    np.testing.assert_array_equal(computed(form.proto)[0], computed(proto)[0])
    assert [layer.op for layer in compile_network(proto.SerializeToString()).layers
            if isinstance(layer, CoreLayer)] == ["SoftmaxOfLevels"]
