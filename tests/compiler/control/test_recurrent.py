"""An RNN, a GRU or an LSTM, unrolled, computes what ONNX Runtime does for the node itself, in every form of it."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from tests.support.recurrent_models import recurrent_model
from tilewright.compiler.control.step_limit import MOST_NODES
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.onnx.reader import load, read_model
from tilewright.compiler.onnx.unrolling import unrolled

_WAYS = ("forward", "reverse", "bidirectional")


def without_recurrence(model):
    made, stay = unrolled(read_model(model.SerializeToString()))
    assert not stay
    assert not {"RNN", "GRU", "LSTM", "Loop", "Scan", "If"} & {node.op_type for node in made.graph.node}
    return made


def feeds_of(model):
    rng = np.random.default_rng(1)
    return {value.name: rng.normal(size=[each.dim_value for each in value.type.tensor_type.shape.dim])
            .astype(np.float32) for value in model.graph.input}


def results(model, feeds):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


def require_same(model):
    feeds = feeds_of(model)
    for ours, theirs in zip(results(without_recurrence(model), feeds), results(model, feeds), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)


@pytest.mark.parametrize("states", ["inputs", "constants", "none"])
@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_every_direction_and_kind_of_initial_state(op, way, states):
    require_same(recurrent_model(op, states=states, bias=states != "none", attributes={"direction": way},
                                 lengths=(5, 5) if states == "constants" else None))


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize(("op", "names", "numbers"), [
    ("GRU", (), {"linear_before_reset": 1}), ("GRU", (), {"linear_before_reset": 1, "clip": 0.2}),
    ("GRU", (), {"clip": 0.2}), ("LSTM", (), {"clip": 0.3}), ("RNN", (), {"clip": 0.3}),
    ("LSTM", (), {"input_forget": 1}), ("RNN", ("Relu",), {}), ("RNN", ("Softsign",), {}), ("RNN", ("Softplus",), {}),
    ("RNN", ("Elu",), {}), ("RNN", ("ThresholdedRelu",), {"activation_alpha": [0.3]}),
    ("RNN", ("ScaledTanh",), {"activation_alpha": [0.5], "activation_beta": [0.7]}),
    ("RNN", ("Affine",), {"activation_alpha": [0.5], "activation_beta": [0.1]}),
    ("GRU", ("HardSigmoid", "LeakyRelu"), {"activation_alpha": [0.3, 0.2], "activation_beta": [0.4]}),
    ("LSTM", ("HardSigmoid", "Softsign", "Relu"), {})])
def test_activations_and_flags(op, names, numbers, way):
    count = 2 if way == "bidirectional" else 1
    given = {key: value * count if isinstance(value, list) else value for key, value in numbers.items()}
    if names:
        given["activations"] = list(names) * count
    require_same(recurrent_model(op, attributes={"direction": way, **given}))


@pytest.mark.parametrize("way", _WAYS)
def test_peepholes(way):
    require_same(recurrent_model("LSTM", peepholes=True, attributes={"direction": way}))
    require_same(recurrent_model("LSTM", peepholes=True, attributes={"direction": way, "input_forget": 1, "clip": 0.4}))


@pytest.mark.parametrize("opset", [7, 9, 11, 14, 22])
def test_every_opset(opset):
    require_same(recurrent_model("GRU", opset=opset))
    require_same(recurrent_model("LSTM", opset=opset, sizes=(1, 1, 3, 4)))


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_batches_before_steps_are_those_of_onnx_s_reference(op):
    """ONNX Runtime's processor has no such layout."""
    model = recurrent_model(op, sizes=(5, 2, 3, 4), attributes={"layout": 1})
    plain = recurrent_model(op, sizes=(5, 2, 3, 4))
    feeds = feeds_of(model)
    ours = results(without_recurrence(model), feeds)
    theirs = results(plain, {name: values.transpose(1, 0, 2) for name, values in feeds.items()})
    turned = [theirs[0].transpose(2, 0, 1, 3), *(each.transpose(1, 0, 2) for each in theirs[1:])]
    for value, expected in zip(ours, turned, strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=2e-6)
    if op != "RNN":
        reference = ReferenceEvaluator(model).run(None, feeds)
        np.testing.assert_allclose(ours[0], reference[0].reshape(ours[0].shape), rtol=0, atol=2e-6)


def test_weights_are_in_the_model_once_whatever_the_number_of_steps():
    sizes = {steps: sum(len(each.raw_data) for each in without_recurrence(recurrent_model(
        "LSTM", sizes=(steps, 1, 16, 32))).graph.initializer) for steps in (2, 8)}
    weights = 4 * (16 + 32 + 2) * 4 * 32
    assert weights <= sizes[2]
    assert sizes[8] - sizes[2] < weights // 16


def test_weights_whose_gates_are_put_in_another_order_are_constants():
    """As torch exports an LSTM to a shape that is not known: slices of its weights, and a concatenation of them."""
    model = recurrent_model("LSTM", sizes=(5, 2, 64, 64))
    weights = next(each for each in model.graph.initializer if each.name == "R")
    weights.name = "stored"
    for name, first in (("second", 64), ("first", 0), ("others", 128)):
        bounds = [onnx.numpy_helper.from_array(np.array([each]), f"{name}{which}") for which, each in enumerate(
            (first, 256 if name == "others" else first + 64, 1))]
        model.graph.initializer.extend(bounds)
        model.graph.node.insert(0, onnx.helper.make_node("Slice", ["stored", *(each.name for each in bounds)], [name]))
    model.graph.node.insert(3, onnx.helper.make_node("Concat", ["second", "first", "others"], ["R"], axis=1))
    require_same(model)


def refused(model):
    with pytest.raises(UnsupportedNodeError, match="recurrent") as caught:
        load(model.SerializeToString())
    return str(caught.value)


def test_lengths_that_are_not_all_steps_are_refused():
    assert "[5, 3]" in refused(recurrent_model("GRU", lengths=(5, 3)))
    model = recurrent_model("GRU", lengths=(5, 5))
    lengths = next(each for each in model.graph.initializer if each.name == "lengths")
    model.graph.input.append(onnx.helper.make_tensor_value_info("lengths", onnx.TensorProto.INT32, [2]))
    model.graph.initializer.remove(lengths)
    assert "--input-value lengths=5" in refused(model)


def test_computed_weights_and_unknown_activations_are_refused():
    model = recurrent_model("GRU")
    next(each for each in model.graph.initializer if each.name == "R").name = "constant"
    model.graph.node.insert(0, onnx.helper.make_node("Mul", ["constant", "h"], ["R"]))
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_value = 1
    assert "'R'" in refused(model)
    assert "'Swish'" in refused(recurrent_model("RNN", attributes={"activations": ["Swish"]}))


def test_more_steps_than_are_unrolled_are_refused_with_a_number_that_helps():
    long = recurrent_model("GRU", sizes=(MOST_NODES, 1, 2, 2))
    message = refused(long)
    assert f"{MOST_NODES:,} steps" in message
    most = int(message.split("at most ")[-1].split(" steps")[0].replace(",", ""))
    without_recurrence(recurrent_model("GRU", sizes=(most, 1, 2, 2)))
