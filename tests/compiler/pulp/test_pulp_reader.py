"""Networks of PULP's tools run on the datapath and give what their definitions say; what cannot is named by node."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from tests.support.pulp_networks import PulpNetwork, computed_in_whole_numbers
from tilewright.compiler.errors import CompileError, UnsupportedNodeError
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.pulp.fitted_shift import fitted_shift
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation
from tilewright.runtime.session import InferenceSession

NETWORKS = Path(__file__).parents[4] / "shared" / "networks"


def weights(rng, *shape):
    return rng.integers(-20, 21, shape).astype(np.float32)


def equal(model, shape, *, on_core=0, low=0, machine=None):
    """Assert that the network gives the loops' outputs, for two inputs."""
    content, rng = model.SerializeToString(), np.random.default_rng(3)
    assert sum(isinstance(each, CoreLayer) for each in compile_network(content).layers) == on_core
    session, output = InferenceSession(content, machine), model.graph.output[0].name
    kind = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    for _ in range(2):
        x = rng.integers(low, low + 256, shape)
        found, = session.run(None, {"x": x.astype(kind)})
        assert np.array_equal(found, computed_in_whole_numbers(model, x)[output])


@pytest.mark.parametrize("machine", [None, "base_integer"])
def test_a_network_of_deeploy_gives_its_own_integers(machine):
    """Convolution, depthwise, residual of levels, a requantisation alone, a pool and a signed dense layer."""
    rng, net = np.random.default_rng(0), PulpNetwork((1, 3, 8, 8))
    one, zero = np.array(1), np.zeros((8, 1, 1))
    first = net.shifted(net.add("Conv", "x", weights(rng, 8, 3, 3, 3), pads=[1, 1, 1, 1]), np.full((8, 1, 1), 514),
                        zero, 16)
    second = net.shifted(net.add("Conv", first, weights(rng, 8, 1, 3, 3), pads=[1, 1, 1, 1], group=8),
                         rng.integers(200, 600, (8, 1, 1)), zero, 16)
    total = net.shifted(net.add("Add", first, second), one, 0 * one, 1)
    alone = net.shifted(total, 11 * one, 5 * one, 3, levels=128)
    pooled = net.add("Flatten", net.add("MaxPool", alone, kernel_shape=[4, 4], strides=[4, 4]), axis=1)
    last = net.shifted(net.add("Gemm", pooled, weights(rng, 5, 32), weights(rng, 5), transB=1), 64 * one, 0 * one, 12,
                       signed=True)
    equal(net.model(last, (1, 5)), (1, 3, 8, 8), machine=machine)


def test_a_network_of_match_gives_its_own_integers():
    """Weights are int8 stored as uint8, the input is of integers, and the last sums are handed out."""
    rng, net = np.random.default_rng(1), PulpNetwork((1, 4, 6, 6), TensorProto.UINT8)
    kernel = rng.integers(-128, 128, (8, 4, 1, 1)).astype(np.int8).view(np.uint8)
    x = net.add("Cast", net.add("Conv", "x", kernel), to=TensorProto.INT32)
    for kind, value in (("Mul", np.full((1, 8, 1, 1), 64)), ("Add", 32 + 64 * rng.integers(-9, 9, (1, 8, 1, 1)))):
        x = net.add(kind, x, value.astype(np.int32))
    x = net.add("Floor", net.add("Div", x, np.array([4096], np.int32)))
    x = net.add("Cast", net.add("Clip", x, min=0.0, max=255.0), to=TensorProto.UINT8)
    matrix = rng.integers(-128, 128, (288, 3)).astype(np.int8).view(np.uint8)
    x = net.add("Cast", net.add("MatMul", net.add("Flatten", x, axis=1), matrix), to=TensorProto.INT32)
    last = net.add("Add", x, np.array([[5, -7, 9]], np.int32))
    # One shifted sum alone is no dialect: a second one is.
    doubled = net.add("Div", net.add("Mul", last, np.array(2)), np.array(2))
    net.add("Clip", net.add("Floor", doubled), min=0.0, max=255.0)
    model = net.model(last, (1, 3))
    equal(model, (1, 4, 6, 6))


@pytest.mark.parametrize("signed", [False, True])
def test_addends_between_sums_need_a_machine_with_integers(signed):
    """No float32 scale gives these levels: other machines refuse all such nodes, and say which has the unit."""
    rng, net = np.random.default_rng(7), PulpNetwork((1, 3, 9, 9), TensorProto.INT8 if signed else TensorProto.FLOAT)
    last = "x"
    for kernel, channels in ((weights(rng, 6, 3, 3, 3), 6), (weights(rng, 6, 1, 3, 3), 6)):
        convolved = net.add("Conv", last, kernel, pads=[1, 1, 1, 1], group=6 if kernel.shape[1] == 1 else 1)
        last = net.shifted(convolved, rng.integers(150, 700, (channels, 1, 1)),
                           rng.integers(-1_500_000, 1_500_000, (channels, 1, 1)), 15, signed=signed)
    flat = net.add("Flatten", net.add("MaxPool", last, kernel_shape=[3, 3], strides=[3, 3]), axis=1)
    dense = net.add("Gemm", flat, weights(rng, 5, 54), weights(rng, 5), transB=1)
    last = net.shifted(dense, rng.integers(150, 700, 5), rng.integers(-1_500_000, 1_500_000, 5), 16, signed=True)
    model = net.model(last, (1, 5))
    equal(model, (1, 3, 9, 9), low=-128 if signed else 0, machine="base,integer_requantise=true")
    with pytest.raises(UnsupportedNodeError, match="--machine base,integer_requantise=true") as caught:
        InferenceSession(model.SerializeToString(), "base")
    assert len(caught.value.others) == 2


def nemo_levels(net, sums, channels, divisor, rng, rank=4):
    """Add NEMO's batch normalisation and requantisation: two multipliers, an addend, casts and a floor."""
    shape = (1, channels, *(1,) * (rank - 2))
    scaled = net.add("Mul", rng.integers(200, 900, shape).astype(np.float32), sums)
    moved = net.add("Cast", net.add("Add", scaled, rng.integers(-900_000, 900_000, shape).astype(np.float32)), to=7)
    quotient = net.add("Div", net.add("Mul", moved, np.array(211)), np.array(divisor))
    cut = net.add("Cast", net.add("Cast", net.add("Cast", quotient, to=7), to=7), to=1)
    return net.add("Clip", cut, min=0.0, max=255.0)


@pytest.mark.parametrize(("divisor", "machine"), [
    (1 << 24, "base,integer_requantise=true"), ((1 << 24) - 1, "base,integer_requantise=true"),
    (1 << 24, "base_integer")])
def test_averages_pads_and_divisors_of_nemo(divisor, machine):
    """Windows of 15 pixels, times 15 and 34, over 512: the last average may be 256, and is 255 then."""
    rng, net = np.random.default_rng(11), PulpNetwork((1, 1, 12, 16))
    x = net.add("Pad", "x", pads=[0, 0, 1, 2, 0, 0, 1, 2])
    x = nemo_levels(net, net.add("Conv", x, weights(rng, 6, 1, 3, 5), strides=[2, 2]), 6, divisor, rng)
    x = nemo_levels(net, net.add("Conv", x, weights(rng, 6, 1, 3, 3), pads=[1, 1, 1, 1], group=6), 6, divisor, rng)
    pooled = net.add("AveragePool", x, kernel_shape=[3, 5], strides=[3, 3], pads=[0, 0, 0, 0])
    again = net.add("Mul", net.add("Mul", pooled, np.array(15)), np.array(34))
    mean = net.add("Floor", net.add("Div", again, np.array(512.0)))
    flat = net.add("Flatten", mean, axis=1)
    last = net.add("MatMul", flat, weights(rng, 24, 3))
    equal(net.model(last, (1, 3)), (1, 1, 12, 16), machine=machine)


def test_a_divisor_that_18_bits_do_not_equal_is_fitted_and_said():
    """The levels are those of the nearest multipliers, few of which begin at another sum."""
    rng, net = np.random.default_rng(13), PulpNetwork((1, 3, 9, 9))
    last = "x"
    for channels in (3, 6):
        sums = net.add("Conv", last, weights(rng, channels, 3, 3, 3))
        scaled = net.add("Mul", sums, rng.integers(4000, 9000, (1, channels, 1, 1)))
        last = net.add("Clip", net.add("Floor", net.add("Div", scaled, np.array(999_983))), min=0.0, max=255.0)
    model = net.model(last, (1, 6, 5, 5))
    read = read_model(model.SerializeToString())
    said = [note for note in notes_of(read) if "999,983" in note]
    wrong, count = (int(each) for each in re.search(r"([0-9]+) of ([0-9,]+) levels", said[0].replace(",", "")).groups())
    assert 0 < wrong < count / 20
    session = InferenceSession(model.SerializeToString(), "base,integer_requantise=true")
    x = rng.integers(0, 256, (1, 3, 9, 9))
    found, = session.run(None, {"x": x.astype(np.float32)})
    assert np.abs(found - computed_in_whole_numbers(model, x)[last]).max() <= 1


def test_an_average_that_nothing_bounds_is_added_to_and_multiplied():
    """NEMO cuts it down to whole numbers, which 8 bits hold."""
    rng, net = np.random.default_rng(14), PulpNetwork((1, 2, 8, 8))
    x = nemo_levels(net, net.add("Conv", "x", weights(rng, 4, 2, 3, 3), pads=[1, 1, 1, 1]), 4, 1 << 24, rng)
    halves = []
    for _ in range(2):
        pooled = net.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
        again = net.add("Mul", net.add("Mul", pooled, np.array(4)), np.array(32))
        halves.append(net.add("Floor", net.add("Div", again, np.array(128.0))))
        x = nemo_levels(net, net.add("Conv", x, weights(rng, 4, 4, 1, 1)), 4, 1 << 23, rng)
    total = net.add("Add", net.add("Mul", halves[0], np.array(9)), halves[1])
    last = net.add("Clip", net.add("Floor", net.add("Div", total, np.array(8.0))), min=0.0, max=255.0)
    equal(net.model(last, (1, 4, 4, 4)), (1, 2, 8, 8), machine="base,integer_requantise=true")


def test_convolutions_over_one_dimension_are_computed_in_whole_numbers():
    """As TCNs of DORY: a residual, an average of pairs, sums that are handed out."""
    rng, net = np.random.default_rng(12), PulpNetwork((1, 4, 40))
    x = nemo_levels(net, net.add("Conv", "x", weights(rng, 6, 4, 3), pads=[2, 0]), 6, 1 << 24, rng, rank=3)
    y = nemo_levels(net, net.add("Conv", x, weights(rng, 6, 6, 5), pads=[4, 0], strides=[1]), 6, 1 << 25, rng, rank=3)
    total = net.add("Floor", net.add("Div", net.add("Add", net.add("Mul", x, np.array(17)), net.add(
        "Mul", y, np.array(15))), np.array(32.0)))
    x = net.add("Clip", total, min=0.0, max=255.0)
    pooled = net.add("AveragePool", x, kernel_shape=[2], strides=[2], pads=[0, 0])
    x = net.add("Floor", net.add("Div", net.add("Mul", net.add("Mul", pooled, np.array(2)), np.array(32)),
                                 np.array(64.0)))
    last = net.add("MatMul", net.add("Flatten", x, axis=1), weights(rng, 120, 3))
    equal(net.model(last, (1, 3)), (1, 4, 40), machine="base,integer_requantise=true")


@pytest.mark.parametrize("seed", range(20))
def test_a_division_by_any_number_is_one_by_a_power_of_two(seed):
    rng = np.random.default_rng(seed)
    divisor, low = int(rng.integers(2, 1 << rng.integers(3, 24))) | 1, int(rng.choice([0, -128]))
    multipliers, addends = (tuple(rng.integers(*ends, 3).tolist()) for ends in ((1, 5000), (-90_000, 90_000)))
    given = ShiftRequantisation(multipliers, addends, int(rng.integers(0, 4)), low, low + 255)
    reach = tuple((-int(end), int(2 * end)) for end in rng.integers(1, 400_000, 3))
    found = fitted_shift(given, divisor, reach)
    for channel, (least, greatest) in enumerate(reach):
        sums = np.arange(least, greatest + 1)
        wanted = (sums * multipliers[channel] + addends[channel]) // (divisor << given.shift)
        assert np.array_equal(found.levels(sums, channel), np.clip(wanted, low, low + 255))


def test_a_division_that_no_power_of_two_equals_is_refused():
    """Sums of 41 bits would need a multiplier of as many."""
    given = ShiftRequantisation((3,), (1,), 0, 0, 255)
    with pytest.raises(ValueError, match="30 bits"):
        fitted_shift(given, (1 << 32) - 1, ((0, 1 << 41),))


def test_integers_read_levels_that_a_scale_wrote_below_a_zero_point():
    """The layer before is written with a zero point that brings halves up, and read as the levels are."""
    rng, net, last = np.random.default_rng(10), PulpNetwork((1, 3, 5, 5), TensorProto.INT8), "x"
    for multiplier, addend, shift in ((11, 0, 8), (13, 77_777, 12)):
        last = net.shifted(net.add("Conv", last, weights(rng, 3, 3, 1, 1)), np.full((3, 1, 1), multiplier),
                           addend * rng.integers(-3, 4, (3, 1, 1)), shift, signed=True)
    equal(net.model(last, (1, 3, 5, 5)), (1, 3, 5, 5), low=-128, machine="base,integer_requantise=true")


def test_a_sum_that_is_not_bounded_is_multiplied_whole():
    """NEMO's residuals: factors and divisor cancel, and what the next product reads may reach 510."""
    rng, net = np.random.default_rng(8), PulpNetwork((1, 2, 6, 6))
    factor = np.array(32)
    sides = [net.add("Mul", net.shifted(net.add("Conv", "x", weights(rng, 4, 2, 1, 1)), np.full((4, 1, 1), 4096),
                                        np.zeros((4, 1, 1)), 16), factor) for _ in range(2)]
    total = net.add("Floor", net.add("Div", net.add("Add", *sides), factor))
    last = net.shifted(net.add("Conv", total, weights(rng, 3, 4, 3, 3), pads=[1, 1, 1, 1]),
                       np.full((3, 1, 1), 1024), np.zeros((3, 1, 1)), 18)
    equal(net.model(last, (1, 3, 6, 6)), (1, 2, 6, 6))


def test_sums_that_are_handed_out_may_be_computed_with():
    rng, net = np.random.default_rng(9), PulpNetwork((1, 2, 6, 6))
    first = net.shifted(net.add("Conv", "x", weights(rng, 2, 2, 1, 1)), np.full((2, 1, 1), 4096),
                        np.zeros((2, 1, 1)), 16)
    sums = net.add("MatMul", net.add("Flatten", first, axis=1), rng.integers(-128, 128, (72, 3)).astype(np.float32))
    content = net.model(net.add("Sigmoid", sums), (1, 3)).SerializeToString()
    x = rng.integers(0, 256, (1, 2, 6, 6))
    found, = InferenceSession(content).run(None, {"x": x.astype(np.float32)})
    model = net.model(sums, (1, 3))
    del model.graph.node[-1]
    assert np.array_equal(found > 0.5, computed_in_whole_numbers(model, x)[sums] > 0)


def test_signed_inputs_are_stated_as_such():
    rng, net = np.random.default_rng(2), PulpNetwork((1, 2, 5, 5), TensorProto.INT8)
    last = net.shifted(net.add("Conv", "x", weights(rng, 4, 2, 2, 2)), np.full((4, 1, 1), 4), np.zeros((4, 1, 1)), 7,
                       signed=True)
    equal(net.model(last, (1, 4, 4, 4)), (1, 2, 5, 5), low=-128)


@pytest.mark.parametrize(("factor", "multiplier", "shift"), [(1, 1, 1), (1, 7, 4), (3, 1, 3)])
def test_halves_of_a_signed_sum_go_up(factor, multiplier, shift):
    """They do above 0 and below, which no scales give alone: operands are read with a lower zero point."""
    rng, net = np.random.default_rng(5), PulpNetwork((1, 2, 8, 8), TensorProto.INT8)
    own = net.shifted(net.add("Conv", "x", weights(rng, 2, 2, 1, 1)), np.full((2, 1, 1), 8), np.zeros((2, 1, 1)), 7,
                      signed=True)
    total = net.add("Add", own, net.add("Mul", "x", np.array(factor)))
    last = net.shifted(total, np.array(multiplier), np.array(0), shift, signed=True)
    equal(net.model(last, (1, 2, 8, 8)), (1, 2, 8, 8), low=-128)


@pytest.mark.parametrize(("factors", "multiplier", "shift"), [((1, 1), 3, 1), ((1, 1), 5, 3), ((7, 300), 3, 9),
                                                              ((3, 16, 99), 5, 10)])
@pytest.mark.parametrize("dense", [False, True])
def test_sums_that_the_adder_cannot_give_are_products_of_tensors_side_by_side(factors, multiplier, shift, dense):
    """Signed halves go up, factors exceed 127, or there are three tensors; any machine runs."""
    rng, net = np.random.default_rng(6), PulpNetwork((1, 3, 4, 4), TensorProto.INT8)
    given, shape = ("x", (1, 3, 4, 4)) if not dense else (net.add("Flatten", "x", axis=1), (1, 5))
    total = ""
    for factor in factors:
        sums = net.add("Gemm", given, weights(rng, 5, 48), weights(rng, 5), transB=1) if dense else net.add(
            "Conv", given, weights(rng, 3, 3, 1, 1))
        term = net.add("Mul", net.shifted(sums, np.array(8), np.array(0), 9 if dense else 7, signed=True),
                       np.array(factor))
        total = net.add("Add", total, term) if total else term
    last = net.shifted(total, np.array(multiplier), np.array(-5), shift, signed=True)
    equal(net.model(last, shape), (1, 3, 4, 4), low=-128)


def test_how_an_input_is_read_is_said():
    net = PulpNetwork((1, 1, 4, 4))
    last = net.shifted(net.add("Conv", "x", np.ones((1, 1, 2, 2))), np.ones((1, 1, 1)), np.zeros((1, 1, 1)), 2)
    notes = notes_of(read_model(net.model(last, (1, 1, 3, 3)).SerializeToString()))
    assert any("'x'" in each and "255" in each for each in notes)


@pytest.mark.parametrize(("change", "named"), [
    (lambda net: net.shifted("t0", np.array([[[1 << 18]], [[173]]]), np.array([[[1_247_030]], [[7]]]), 15), "262144"),
    (lambda net: net.shifted("t0", np.full((2, 1, 1), -3), np.zeros((2, 1, 1)), 15), "-3"),
    (lambda net: net.shifted("t0", np.full((3, 1, 1), 3), np.zeros((3, 1, 1)), 15), "2 channels"),
    (lambda net: net.shifted("t0", np.full((2, 1, 1), 3.5), np.zeros((2, 1, 1)), 15), "whole"),
    (lambda net: net.shifted("t0", np.full((2, 1, 1), 3), np.zeros((2, 1, 1)), 15, levels=512), "512"),
    (lambda net: net.shifted(net.add("iSoftmax", "t0"), np.ones(1), np.zeros(1), 1), "iSoftmax"),
    (lambda net: net.shifted(net.add("Add", net.add("Add", *[net.shifted("t0", np.array(1), np.zeros(1), 9)] * 2),
                                     net.add("Mul", "t1", np.array(9000))), np.ones(1), np.zeros(1), 15), "9000"),
], ids=["large", "negative", "shape", "fraction", "levels", "operator", "factors"])
def test_what_is_not_compiled_is_named_by_node(change, named):
    net = PulpNetwork((1, 3, 9, 9))
    net.add("Conv", "x", weights(np.random.default_rng(4), 2, 3, 3, 3))
    last = change(net)
    with pytest.raises(UnsupportedNodeError, match=named):
        read_model(net.model(last, (1, 2, 7, 7)).SerializeToString())


@pytest.mark.parametrize("attribute", ["div", "signed"])
def test_a_damaged_requantisation_is_refused(attribute):
    net = PulpNetwork((1, 1, 4, 4))
    last = net.shifted(net.add("Conv", "x", np.ones((1, 1, 2, 2))), np.ones((1, 1, 1)), np.zeros((1, 1, 1)), 2)
    model = net.model(last, (1, 1, 3, 3))
    found = next(each for each in model.graph.node[1].attribute if each.name == attribute)
    found.t.CopyFrom(numpy_helper.from_array(np.ones(2, np.float32)))
    found.t.raw_data = found.t.raw_data[:5]
    with pytest.raises(CompileError):
        read_model(model.SerializeToString())


def test_a_name_that_is_no_text_is_a_fault_of_the_file():
    net = PulpNetwork((1, 1, 4, 4))
    last = net.shifted(net.add("Conv", "x", np.ones((1, 1, 2, 2))), np.ones((1, 1, 1)), np.zeros((1, 1, 1)), 2)
    content = net.model(last, (1, 1, 3, 3)).SerializeToString().replace(b"RequantShift_1", b"Requant\xffhift_1")
    with pytest.raises(CompileError):
        read_model(content)


@pytest.mark.skipif(not NETWORKS.is_dir(), reason="networks of others lie outside the repository")
def test_keyword_spotting_of_deeploy_equals_the_loops():
    path = NETWORKS / "deeploy_MLPerf_KeywordSpotting.onnx"
    session = InferenceSession(path)
    assert not any(isinstance(each, CoreLayer) for each in compile_network(path).layers)
    given = np.load(path.with_suffix(".inputs.npz"))["input_0"]
    found, = session.run(None, {"input": given.astype(np.float32)})
    assert found.tolist() == [[-4, 9, -5, -2, 8, -16, 4, 9, -15, -4, -10, 2]]
