"""Where ONNX Runtime's kernels saturate, its answers are exact all the same, or nothing is compared with them.

Nothing here depends on the processor: saturating kernels are a NumPy model, and the exact route can be asked for
anywhere.
"""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.test_app import invoke
from tests.support.exactness import assert_exact
from tests.support.onnx_models import FORMS, ModelBuilder
from tilewright.cli import doctor
from tilewright.runtime.oracle import exact_products
from tilewright.runtime.oracle import onnx_runtime as reference
from tilewright.runtime.oracle.exact_products import (
    EXACT,
    MIXED,
    SATURATING,
    UNSIGNED,
    Kernels,
    kernels_here,
    make_exact,
    multiply,
    probe,
)
from tilewright.runtime.oracle.onnx_runtime import Level, Reference, SaturationError, session

NO_ROUTE = Kernels(EXACT.exact - {MIXED, UNSIGNED})
CONTRIB = "com.microsoft"
TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int32": TensorProto.INT32}


def saturating(*pairs):
    """Return a product of matrices that adds pairs of products in 16 bits, as vpmaddubsw does, for these types."""
    def product(left, right):
        terms = left.astype(np.int64)[:, :, None] * right.astype(np.int64)[None]
        if (str(left.dtype), str(right.dtype)) in pairs:
            terms = np.clip(terms[:, ::2] + terms[:, 1::2], -2**15, 2**15 - 1)
        return terms.sum(axis=1)
    return product


# ---- the probe


def test_the_model_of_a_saturating_kernel_is_what_was_measured():
    """On an EPYC with AVX2 alone; 518,160 and -522,240 are exact."""
    left = np.full((1, 16), 255, np.uint8)
    for weight, found in ((127, 262_136), (-128, -262_144)):
        assert saturating(MIXED)(left, np.full((16, 1), weight, np.int8)) == found


@pytest.mark.parametrize(("pairs", "kernels", "said"), [
    ((), EXACT, "exact"),
    ((MIXED,), SATURATING, "uint8 x int8 saturates; run as uint8 x uint8"),
    ((MIXED, UNSIGNED), NO_ROUTE, "uint8 x int8 saturates, and so does uint8 x uint8"),
])
def test_the_probe_tells_kernels_apart(pairs, kernels, said):
    found = probe(saturating(*pairs))
    assert (found, str(found), found.saturate) == (kernels, said, bool(pairs))


def test_there_is_an_exact_route_here():
    assert kernels_here() in (EXACT, SATURATING)
    assert kernels_here() == probe(multiply)


# ---- models of one product


def extremes(rng, dtype, *shape):
    """Return an array of the least and the largest value, whole rows alike, so that sums go far."""
    bounds = np.iinfo(dtype)
    rows = rng.choice([bounds.min, bounds.max], (shape[0], *(1,) * (len(shape) - 1)))
    return np.broadcast_to(rows, shape).astype(dtype)


def one_node(op, arrays, fed, domain="", **attrs):
    """Return a model of one operator whose inputs are ``arrays``, those called ``fed`` the model's."""
    inputs = [helper.make_tensor_value_info(name, TYPES[str(arrays[name].dtype)], arrays[name].shape) for name in fed]
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()
                 if array is not None and name not in fed]
    names = [name if array is not None else "" for name, array in arrays.items()]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], domain=domain, **attrs)], "one", inputs,
                              [onnx.ValueInfoProto(name="y")], constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)])


def answer(op, arrays, fed, domain="", **attrs):
    """Return what ONNX Runtime makes of it by the exact route."""
    model = one_node(op, arrays, fed, domain, **attrs)
    runner = session(model.SerializeToString(), SATURATING, Level.ORT_DISABLE_ALL)
    return runner.run(["y"], {name: arrays[name] for name in fed})[0]


def types_of(arrays, fed):
    return {name: f"tensor({arrays[name].dtype})".replace("float32", "float") for name in fed}


def requantised(sums, scale, zero_point):
    return np.clip(np.rint(sums.astype(np.float32) * np.float32(scale)) + zero_point, 0, 255).astype(np.uint8)


RNG = np.random.default_rng(5)
LEFT, RIGHT = extremes(RNG, np.uint8, 6, 32), extremes(RNG, np.int8, 20, 32).T.copy()
SCALE, SUMS = np.float32(2**-13), LEFT.astype(np.int64) @ RIGHT.astype(np.int64)
ONE, ZERO, BYTE = np.float32(1), np.int8(0), np.uint8(0)
OUTPUT = {"ys": np.float32(2**13), "yz": np.uint8(128)}
LSTM = {"x": RNG.standard_normal((3, 1, 8)).astype(np.float32),
        "w": RNG.integers(-60, 60, (1, 8, 16)).astype(np.int8), "r": RNG.integers(-60, 60, (1, 4, 16)).astype(np.int8),
        "b": None, "l": None, "h": None, "c": None, "p": None, "ws": np.full(1, 0.01, np.float32),
        "wz": np.zeros(1, np.int8), "rs": np.full(1, 0.01, np.float32), "rz": np.zeros(1, np.int8)}
ATTENTION = {"x": RNG.integers(0, 256, (1, 4, 8)).astype(np.uint8), "w": RNG.integers(-60, 60, (8, 24)).astype(np.int8),
             "b": np.zeros(24, np.float32), "xs": np.float32(0.01), "ws": np.float32(0.01), "m": None,
             "xz": np.uint8(128), "wz": ZERO}


@pytest.mark.parametrize("fed", [("a",), ("a", "b")], ids=["constant weights", "computed weights"])
@pytest.mark.parametrize("zero_points", [{}, {"az": np.uint8(3)}, {"az": np.uint8(3), "bz": np.int8(-128)},
                                         {"az": BYTE, "bz": np.arange(-10, 10).astype(np.int8)}],
                         ids=["none", "first", "both", "per column"])
def test_integer_products_are_exact(fed, zero_points):
    arrays = {"a": LEFT, "b": RIGHT} | zero_points
    left, right = LEFT.astype(int) - zero_points.get("az", 0), RIGHT.astype(int) - zero_points.get("bz", 0)
    np.testing.assert_array_equal(answer("MatMulInteger", arrays, fed), left @ right)


@pytest.mark.parametrize(("op", "domain", "names"), [
    ("QLinearMatMul", "", "a as az b bs bz ys yz"), ("QGemm", CONTRIB, "a as az b bs bz c ys yz"),
])
def test_quantised_products_are_exact(op, domain, names):
    values = {"a": LEFT, "as": ONE, "az": BYTE, "b": RIGHT, "bs": ONE, "bz": ZERO, "c": None} | OUTPUT
    found = answer(op, {name: values[name] for name in names.split()}, ["a"], domain)
    np.testing.assert_array_equal(found, requantised(SUMS, SCALE, 128))


@pytest.mark.parametrize(("channels", "filters", "group"), [(16, 8, 1), (16, 8, 2), (16, 16, 16), (3, 8, 1)])
@pytest.mark.parametrize("op", ["QLinearConv", "ConvInteger"])
def test_convolutions_are_exact(op, channels, filters, group):
    x = np.full((1, channels, 5, 5), 255, np.uint8)
    w = extremes(RNG, np.int8, filters, channels // group, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(int), (3, 3), (1, 2))
    windows = windows.reshape(group, channels // group, 3, 3, 3, 3)
    kernels = w.astype(int).reshape(group, filters // group, channels // group, 3, 3)
    sums = np.einsum("gchwij,gfcij->gfhw", windows, kernels).reshape(1, filters, 3, 3)
    if op == "ConvInteger":
        np.testing.assert_array_equal(answer(op, {"x": x, "w": w}, ["x"], group=group), sums)
        return
    scale = np.exp2(np.ceil(np.log2(np.abs(sums).max() / 100))).astype(np.float32)
    arrays = {"x": x, "xs": ONE, "xz": BYTE, "w": w, "ws": np.full(filters, 1, np.float32),
              "wz": np.zeros(filters, np.int8), "ys": scale, "yz": np.uint8(128)}
    np.testing.assert_array_equal(answer(op, arrays, ["x"], group=group), requantised(sums, 1 / scale, 128))


def test_products_that_leave_integers_are_exact():
    arrays = {"a": LEFT, "b": RIGHT, "as": ONE, "bs": ONE}
    np.testing.assert_array_equal(answer("MatMulIntegerToFloat", arrays, ["a"], CONTRIB), SUMS.astype(np.float32))
    arrays = {"a": LEFT.astype(np.float32), "b": RIGHT, "bs": ONE}  # 0 to 255 in steps of 1
    np.testing.assert_array_equal(answer("DynamicQuantizeMatMul", arrays, ["a"], CONTRIB), SUMS.astype(np.float32))


@pytest.mark.parametrize(("op", "arrays", "attrs"), [
    ("DynamicQuantizeLSTM", LSTM, {"hidden_size": 4}), ("QAttention", ATTENTION, {"num_heads": 2}),
])
def test_whole_cells_compute_the_same(op, arrays, attrs):
    """Weights are so small that no kernel saturates: both routes must be the same to the bit."""
    model = one_node(op, arrays, ["x"], CONTRIB, **attrs)
    untouched = session(model.SerializeToString(), EXACT, Level.ORT_DISABLE_ALL).run(["y"], {"x": arrays["x"]})[0]
    np.testing.assert_array_equal(answer(op, arrays, ["x"], CONTRIB, **attrs), untouched)
    assert make_exact(model, types_of(arrays, ["x"]), SATURATING) == ()
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    assert types[model.graph.node[0].input[1]] == TensorProto.UINT8


# ---- what is changed, and what is not


def test_weights_of_int8_activations_stay_as_they_are():
    """ONNX Runtime has no convolution of int8 by uint8; and these are exact."""
    model = one_node("MatMulInteger", {"a": LEFT.astype(np.int8), "b": RIGHT}, ["a"])
    before = model.SerializeToString()
    assert make_exact(model, {"a": "tensor(int8)"}, SATURATING) == ()
    assert model.SerializeToString() == before


def test_weights_that_two_kinds_of_activations_share_become_two():
    model = one_node("MatMulInteger", {"a": LEFT, "b": RIGHT}, ["a"])
    model.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT8, LEFT.shape))
    model.graph.node.append(helper.make_node("MatMulInteger", ["s", "b"], ["z"]))
    model.graph.node.append(helper.make_node("MatMulInteger", ["a", "b"], ["again"]))
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in ("z", "again"))
    signed = LEFT.view(np.int8)
    y, z, again = session(model.SerializeToString(), SATURATING).run(["y", "z", "again"], {"a": LEFT, "s": signed})
    np.testing.assert_array_equal(y, SUMS)
    np.testing.assert_array_equal(again, SUMS)
    np.testing.assert_array_equal(z, signed.astype(int) @ RIGHT.astype(int))


def test_a_product_of_constants_is_exact():
    """ONNX Runtime computes it while it fuses."""
    model = one_node("MatMulInteger", {"a": LEFT, "b": RIGHT}, [])
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.INT32, SUMS.shape))
    model.graph.node.append(helper.make_node("Add", ["x", "y"], ["z"]))
    model.graph.output[0].name = "z"
    content, zeros = model.SerializeToString(), {"x": np.zeros(SUMS.shape, np.int32)}
    np.testing.assert_array_equal(session(content, SATURATING).run(["z"], zeros)[0], SUMS)
    np.testing.assert_array_equal(Reference(content, kernels=SATURATING).run(zeros)["z"], SUMS)


def branching():
    """Return a model with a product inside a branch."""
    inner = one_node("MatMulInteger", {"a": LEFT, "b": RIGHT}, []).graph
    outer = helper.make_graph(
        [helper.make_node("If", ["condition"], ["out"], then_branch=inner, else_branch=inner)], "outer",
        [helper.make_tensor_value_info("condition", TensorProto.BOOL, ())], [onnx.ValueInfoProto(name="out")])
    return helper.make_model(outer, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def test_a_product_in_a_branch_is_not_trusted():
    assert make_exact(branching(), {"condition": "tensor(bool)"}, SATURATING) == ("y", "y")
    assert make_exact(branching(), {"condition": "tensor(bool)"}, EXACT) == ()


def network_of(form, dtype=np.uint8):
    """Return a network with a convolution of each kind and a dense layer."""
    model = ModelBuilder(form, dtype=dtype, zero_point=None, seed=3)
    x = model.conv(model.input((1, 3, 8, 8)), 16)
    x = model.conv(model.conv(x, 16, groups=16, pads=(1, 1, 1, 1)), 8, kernel=1)
    return model.finish(model.gemm(model.flatten(x), 3))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("form", FORMS)
def test_every_tensor_of_a_network_is_exact(form, dtype):
    assert_exact(network_of(form, dtype), kernels=SATURATING)


@pytest.mark.parametrize("form", FORMS)
def test_no_product_of_uint8_and_int8_is_left(form):
    shown = Reference(network_of(form), kernels=SATURATING)
    plain = Reference(network_of(form), kernels=EXACT)
    assert shown.operators == plain.operators
    assert (shown.untrusted, plain.untrusted) == ("", "")
    model = onnx.load_from_string(network_of("qoperator"))
    types = {node.output[0]: "tensor(uint8)" for node in model.graph.node}
    assert any(MIXED in exact_products._pairs(node, known(model, types)) for node in products(model))
    assert make_exact(model, types, SATURATING) == ()
    assert {pair for node in products(model) for pair in exact_products._pairs(node, known(model, types))} == {UNSIGNED}


def products(model):
    return [node for node in model.graph.node if exact_products._is_product(node)]


def known(model, types):
    constants = {tensor.name: str(numpy_helper.to_array(tensor).dtype) for tensor in model.graph.initializer}
    return constants | {name: kind[len("tensor("):-1] for name, kind in types.items()}


# ---- what is said


SENTENCE = "not compared: ONNX Runtime saturates on this processor, in"


@pytest.mark.parametrize("form", FORMS)
def test_without_an_exact_route_nothing_is_compared(form):
    model = network_of(form)
    assert Reference(model, kernels=NO_ROUTE).untrusted.startswith(f"{SENTENCE} 4 products of integers (")
    with pytest.raises(SaturationError, match=f"^{SENTENCE}"):
        session(model, NO_ROUTE)
    assert Reference(network_of(form, np.int8), kernels=NO_ROUTE).untrusted == ""


@pytest.mark.parametrize("command", ["run", "compare"])
def test_the_command_line_says_so_and_does_not_fail(tmp_path, monkeypatch, command):
    monkeypatch.setattr(reference, "kernels_here", lambda: NO_ROUTE)
    (tmp_path / "net.onnx").write_bytes(network_of("qdq"))
    done = invoke(command, tmp_path / "net.onnx", "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    assert SENTENCE in done.stdout
    assert "every element is equal" not in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    if command == "run":
        assert report["matches_reference"] is None
    else:
        assert report["onnxruntime"]["not_compared"].startswith(SENTENCE)
        assert {layer["onnx_runtime"] for layer in report["layers"]} == {"hidden"}


@pytest.mark.parametrize("command", ["run", "compare"])
def test_the_exact_route_serves_the_command_line(tmp_path, monkeypatch, command):
    monkeypatch.setattr(reference, "kernels_here", lambda: SATURATING)
    (tmp_path / "net.onnx").write_bytes(network_of("qdq"))
    done = invoke(command, tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    assert "not compared" not in done.stdout


@pytest.mark.parametrize(("kernels", "works"), [(EXACT, True), (SATURATING, True), (NO_ROUTE, False)])
def test_the_doctor_says_which(monkeypatch, kernels, works):
    monkeypatch.setattr(exact_products, "kernels_here", lambda: kernels)
    (finding,) = (each for each in doctor.examine() if each.tool == "ONNX Runtime's kernels")
    assert (finding.version, finding.works, finding.required) == (str(kernels), works, False)
