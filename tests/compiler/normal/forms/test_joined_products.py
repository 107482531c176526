"""JOINED: products of one tensor, side by side in a Concat of their outputs, are one product with the same numbers."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.compiler.normal.graphs import computed, model, node, operators, scalar, zero
from tests.fuzz.twins.judge import judge
from tests.fuzz.twins.rewriting import Step
from tilewright.compiler.normal.forms.joined_products import JOINED
from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.compiler.passes.pass_order import compile_network

_RNG = np.random.default_rng(8)
_BASE = {"xs": scalar(.02), "xz": zero(3), "ys": scalar(.05), "yz": zero(-4), "wz": zero(0)}


def _split(op, counts, shape, axis, *, given="xd", bias="", joined=None, changes=None, outputs=("y",)):
    """Return products of one tensor, of ``counts`` outputs each, their levels and the Concat of these.

    ``changes`` are the second product's attributes and its Q's scale.
    """
    constants = dict(_BASE)
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd")]
    for place, count in enumerate(counts):
        own = changes if place == 1 and changes else {}
        dims = (count, shape[1], 3, 3) if op == "Conv" else (shape[-1], count)
        constants |= {f"w{place}": _RNG.integers(-127, 128, dims).astype(np.int8),
                      f"s{place}": scalar(.01 * (1 + place)), f"b{place}": _RNG.random(count).astype(np.float32),
                      f"q{place}": scalar(own.get("scale", .05))}
        nodes.append(node("DequantizeLinear", [f"w{place}", f"s{place}", "wz"], f"wd{place}"))
        pads = {"pads": own.get("pads", [1, 1, 1, 1])} if op == "Conv" else {}
        product = [given, f"wd{place}", *([f"b{place}"] if bias == "input" else [])]
        nodes.append(node(op, product, f"c{place}", **pads))
        if bias == "Add":
            nodes.append(node("Add", [f"b{place}", f"c{place}"], f"a{place}"))
        levels = [f"{'a' if bias == 'Add' else 'c'}{place}", f"q{place}", "yz"]
        nodes += [node("Relu", levels[:1], f"r{place}"),
                  node("QuantizeLinear", [f"r{place}", *levels[1:]], f"k{place}"),
                  node("DequantizeLinear", [f"k{place}", *levels[1:]], f"p{place}")]
    nodes += [node("Concat", joined or [f"p{place}" for place in range(len(counts))], "c", axis=axis),
              node("QuantizeLinear", ["c", "ys", "yz"], "yq"), node("DequantizeLinear", ["yq", "ys", "yz"], "y")]
    return model(nodes, constants, shape, outputs=outputs)


_SPLIT = {
    "convolutions": _split("Conv", (2, 1, 5), (1, 4, 6, 6), 1, bias="input"),
    "convolutions of floats": _split("Conv", (2, 6), (1, 4, 6, 6), -3, given="x"),
    "matrix products": _split("MatMul", (3, 5), (1, 7, 24), 2, bias="Add"),
    "Gemms": _split("Gemm", (3, 5), (1, 24), 1, bias="input"),
}


@pytest.mark.parametrize("name", _SPLIT)
def test_products_that_only_stand_side_by_side_are_one(name):
    made = normalise(_SPLIT[name])
    assert made.counts[JOINED.name] == 1
    assert sum(each in operators(made.proto) for each in ("Conv", "MatMul", "Gemm", "Concat")) == 1
    np.testing.assert_allclose(computed(made.proto)[0], computed(_SPLIT[name])[0], atol=.0501)  # sums of floats
    layers = compile_network(_SPLIT[name].SerializeToString()).layers
    assert name == "convolutions of floats" or len(layers) == 1


@pytest.mark.parametrize("changes", [
    {"changes": {"scale": .07}}, {"changes": {"pads": [2, 2, 0, 0]}}, {"axis": 2}, {"outputs": ("y", "p1")}])
def test_a_part_that_differs_or_is_seen_elsewhere_stays(changes):
    proto = _split("Conv", (4, 4), (1, 4, 6, 6), changes.pop("axis", 1), **changes)
    assert JOINED.name not in normalise(proto).counts


def test_parts_that_state_the_same_otherwise_are_one():
    proto = _split("Conv", (4, 4), (1, 4, 6, 6), 1, bias="input")
    part = next(each for each in proto.graph.node if each.name == "c1")
    part.attribute.extend([helper.make_attribute("strides", [1, 1]), helper.make_attribute("kernel_shape", [3, 3])])
    constants = {"q": _RNG.integers(-99, 99, 4).astype(np.int32), "qs": scalar(.0004), "qz": np.zeros((), np.int32)}
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    proto.graph.node.insert(0, node("DequantizeLinear", [*constants], "offset"))
    part.input[2] = "offset"
    made = normalise(proto)
    assert operators(made.proto).count("Conv") == 1
    np.testing.assert_allclose(computed(made.proto)[0], computed(proto)[0], atol=.0501)     # sums of floats


def test_neighbours_are_joined_and_the_rest_stays():
    proto = _split("Conv", (2, 3, 4), (1, 4, 6, 6), 1, joined=["xd", "p0", "p2", "xd", "p1"])
    made = normalise(proto).proto
    assert [len(each.input) for each in made.graph.node if each.op_type == "Concat"] == [4]
    np.testing.assert_array_equal(computed(made)[0], computed(proto)[0])


def _grouped(cut, *, order=(0, 1, 2), pair=False):
    """Return three convolutions, of four channels each that ``cut`` makes, and the Concat of their levels."""
    constants = _BASE | {f"at{place}": np.array([4 * place], np.int64) for place in range(4)}
    constants |= {"sizes": np.array([4, 4, 4], np.int64), "one": np.array([1], np.int64)}
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], "xq"), node("DequantizeLinear", ["xq", "xs", "xz"], "xd")]
    if cut == "Split":
        nodes.append(helper.make_node("Split", ["xd", "sizes"], ["c0", "c1", "c2"], axis=1))
    else:
        nodes += [node("Slice", ["xd", f"at{place}", f"at{place + 1}", "one"], f"c{place}") for place in range(3)]
    for place in range(3):
        constants |= {f"w{place}": _RNG.integers(-127, 128, (2, 4, 3, 3)).astype(np.int8), f"s{place}": scalar(.01)}
        given = f"c{order[place]}"
        if pair:
            nodes += [node("QuantizeLinear", [given, "xs", "xz"], f"q{place}"),
                      node("DequantizeLinear", [f"q{place}", "xs", "xz"], f"d{place}")]
            given = f"d{place}"
        nodes += [node("DequantizeLinear", [f"w{place}", f"s{place}", "wz"], f"wd{place}"),
                  node("Conv", [given, f"wd{place}"], f"p{place}", pads=[1, 1, 1, 1])]
    nodes += [node("Concat", ["p0", "p1", "p2"], "c", axis=1),
              node("QuantizeLinear", ["c", "ys", "yz"], "yq"), node("DequantizeLinear", ["yq", "ys", "yz"], "y")]
    return model(nodes, constants, (1, 12, 6, 6))


@pytest.mark.parametrize("cut", ["Split", "Slice"])
@pytest.mark.parametrize("pair", [False, True], ids=["", "of quantised parts"])
def test_convolutions_of_equal_parts_are_one_of_groups(cut, pair):
    proto = _grouped(cut, pair=pair)
    made = normalise(proto)
    assert [each.op_type for each in made.proto.graph.node].count("Conv") == 1
    assert [attribute.i for each in made.proto.graph.node for attribute in each.attribute
            if attribute.name == "group"] == [3]
    np.testing.assert_allclose(computed(made.proto)[0], computed(proto)[0], atol=.0501)     # sums of floats


def test_parts_in_another_order_stay():
    assert operators(normalise(_grouped("Slice", order=(1, 0, 2))).proto).count("Conv") == 3


def _split_bytes(zeros, lowest, highest):
    """Return two convolutions of uint8 weights with these zero points, which hold levels of these bounds."""
    proto = _split("Conv", (4, 4), (1, 4, 6, 6), 1)
    arrays = {each.name: each for each in proto.graph.initializer}
    for place, (zero_point, low, high) in enumerate(zip(zeros, lowest, highest, strict=True)):
        weights = _RNG.integers(low, high + 1, (4, 4, 3, 3))
        weights.flat[:2] = low, high
        arrays[f"w{place}"].CopyFrom(numpy_helper.from_array(weights.astype(np.uint8), f"w{place}"))
        proto.graph.initializer.append(numpy_helper.from_array(np.uint8(zero_point), f"z{place}"))
        next(each for each in proto.graph.node if each.output[0] == f"wd{place}").input[2] = f"z{place}"
    return proto


@pytest.mark.parametrize(("zeros", "lowest", "highest", "joins"), [
    ((100, 100), (0, 20), (255, 220), True),    # the second one's levels are int8 alone
    ((90, 100), (0, 20), (255, 220), True),     # both are held with the first one's zero point
    ((90, 100), (0, 0), (200, 255), True),      # with that of the second
    ((100, 100), (0, 20), (200, 255), True),
    ((60, 160), (0, 10), (255, 230), False),    # and with none
])
def test_products_are_one_where_one_zero_point_holds_the_weights_of_both(zeros, lowest, highest, joins):
    proto = _split_bytes(zeros, lowest, highest)
    made = normalise(proto)
    assert (JOINED.name in made.counts) == joins
    assert operators(made.proto).count("Conv") == (1 if joins else 2)
    np.testing.assert_allclose(computed(made.proto)[0], computed(proto)[0], atol=.0501)  # sums of floats


def test_a_twin_split_by_outputs_has_the_values_and_cycles_of_its_plain_model():
    steps = [Step("split by outputs", 4)]
    finding, applied = judge("lenet5", steps)
    assert (finding.outcome, applied) == ("equal", tuple(steps))
