"""An activation with a scale for each channel has one scale, and its weights before and behind have the others."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise

_RNG = np.random.default_rng(14)
_SCALES = np.linspace(.02, .1, 8).astype(np.float32)


def _levels(*shape):
    return _RNG.integers(-127, 128, shape).astype(np.int8)


def _model(between=(), second=None, zeros=0, **behind):
    """Return a Conv, ``between``, a Q and DQ of a scale for each channel, and another Conv, depthwise unless told."""
    second = _levels(8, 1, 3, 3) if second is None else second
    ends = ["c", *(f"b{index}" for index in range(len(between)))]
    nodes = [node("QuantizeLinear", ["x", "xs", "z"], "xq"), node("DequantizeLinear", ["xq", "xs", "z"], "xd"),
             node("DequantizeLinear", ["w", "ws", "z"], "wd"), node("DequantizeLinear", ["v", "ws", "z"], "vd"),
             node("Conv", ["xd", "wd", "b"], "c"),
             *(node(op, [ends[index]], ends[index + 1], **given) for index, (op, given) in enumerate(between)),
             node("QuantizeLinear", [ends[-1], "cs", "cz"], "q", axis=1),
             node("DequantizeLinear", ["q", "cs", "cz"], "d", axis=1),
             node("Conv", ["d", "vd"], "e", group=8 // second.shape[1], **behind),
             node("QuantizeLinear", ["e", "ys", "z"], "eq"), node("DequantizeLinear", ["eq", "ys", "z"], "y")]
    constants = {"xs": scalar(.02), "z": zero(), "ws": scalar(.01), "ys": scalar(.1), "w": _levels(8, 4, 3, 3),
                 "v": second, "b": np.float32(_RNG.normal(0, .5, 8)), "cs": _SCALES,
                 "cz": np.broadcast_to(np.int8(zeros), 8)}
    return model(nodes, constants, (1, 4, 14, 14))


def _levels_off(proto):
    """Return by how many levels the outputs differ in normal form, and in how many elements; it must be legal."""
    form = normalise(proto)
    assert "channels" in form.counts
    assert list(faults(form.proto)) == []
    assert not {"Mul", "Div"} & {*operators(form.proto)}
    assert {layer.kind for layer in assert_layers(form.proto.SerializeToString()).layers} <= {"conv"}
    (before,), (after,) = computed(proto), computed(form.proto)
    assert len(np.unique(before)) > 20
    return float(np.abs(before - after).max() / .1), float((before != after).mean())


@pytest.mark.parametrize("between", [(), (("Relu", {}),), (("Relu", {}), ("MaxPool", {"kernel_shape": [2, 2]}))],
                         ids=len)
@pytest.mark.parametrize(("zeros", "behind"), [(0, {}), (-128, {"pads": [1, 1, 1, 1]})])
def test_a_depthwise_convolution_has_them_in_its_scales(between, zeros, behind):
    off, share = _levels_off(_model(between, zeros=zeros, **behind))
    assert off <= 1.01
    assert share < .01


@pytest.mark.parametrize("shape", [(6, 8, 1, 1), (6, 8, 3, 3), (8, 2, 3, 3), (12, 4, 3, 3)], ids=str)
def test_weights_of_other_convolutions_are_requantised_with_a_note(shape):
    proto = _model(second=_levels(*shape))
    assert _levels_off(proto)[0] <= 8      # a half of the largest / 127, 72 times
    assert any("requantised" in note for note in normalise(proto).notes)


@pytest.mark.parametrize("change", ["zero points", "a sum", "an output"])
def test_what_else_reads_or_makes_it_keeps_the_scales(change):
    proto = _model()
    if change == "zero points":
        held = next(each for each in proto.graph.initializer if each.name == "cz")
        held.raw_data = np.arange(8, dtype=np.int8).tobytes()
    elif change == "a sum":
        proto.graph.node[7].input[0] = "s"
        proto.graph.node.insert(7, node("Sigmoid", ["d"], "s"))
    else:
        proto.graph.output.append(type(proto.graph.output[0])(name="d"))
        proto.graph.output[-1].type.CopyFrom(proto.graph.output[0].type)
    assert "channels" not in normalise(proto).counts
