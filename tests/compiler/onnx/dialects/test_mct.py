"""MCT's quantisers become quantisation of the same values; those of a table of values are refused."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.passes.pass_order import compile_network

SHAPE = (1, 4, 6, 6)
DOMAIN = "mct_quantizers"


def model_of(nodes, constants=(), shape=SHAPE):
    tensors = [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants]
    graph = helper.make_graph(nodes, "mct", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)],
                             ir_version=8)


def activation(kind, x="x", y="y", **attributes):
    return helper.make_node(f"Activation{kind}Quantizer", [x], [y], f"q_{y}", domain=DOMAIN, mctq_version="1.7.0",
                            **attributes)


def run(model, x):
    read = read_model(model.SerializeToString())
    session = onnxruntime.InferenceSession(read.SerializeToString(), providers=["CPUExecutionProvider"])
    return read, session.run(None, {"x": x})[0]


def symmetric(x, threshold, bits, signed):
    """Return what `quantize_sym_activations_numpy` of mct_quantizers computes."""
    scale = threshold / 2**(bits - 1) if signed else threshold / 2**bits
    low = -threshold if signed else 0
    return np.round(np.clip(x, low, threshold - scale) / scale) * scale


def uniform(x, low, high, bits):
    """Return what `quantize_uniform_activations_numpy` of mct_quantizers computes."""
    scale = (high - low) / (2**bits - 1)
    if low > 0:
        low = 0.0
    elif high < 0:
        high = 0.0
    else:
        low, high = scale * np.round(low / scale), high - low + scale * np.round(low / scale)
    scale = (high - low) / (2**bits - 1)
    return scale * np.round((np.clip(x, low, high) - low) / scale) + low


@pytest.mark.parametrize(("kind", "threshold"), [("POT", 4.0), ("Symmetric", 3.3)])
@pytest.mark.parametrize(("bits", "signed"), [(8, 1), (8, 0), (4, 1), (2, 0)])
def test_a_threshold_is_the_scale_of_all_levels(kind, threshold, bits, signed):
    x = np.random.default_rng(bits).normal(0, 3, SHAPE).astype(np.float32)
    _, y = run(model_of([activation(kind, threshold=threshold, num_bits=bits, signed=signed)]), x)
    np.testing.assert_allclose(y, symmetric(x, threshold, bits, signed), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(-1.3, 2.9), (0.5, 3.0), (-3.0, -0.5)])
def test_a_range_has_zero_as_a_level(low, high):
    x = np.random.default_rng(1).normal(0, 2, SHAPE).astype(np.float32)
    _, y = run(model_of([activation("Uniform", min_range=low, max_range=high, num_bits=8)]), x)
    np.testing.assert_allclose(y, uniform(x, low, high, 8), atol=1e-5)


def convolution(kind, ranges, **attributes):
    """Return a network of a convolution whose weights are quantised per channel, and those weights."""
    weights = np.random.default_rng(2).normal(0, 0.4, (3, 4, 3, 3)).astype(np.float32)
    names = [f"range{index}" for index in range(len(ranges))]
    quantise = helper.make_node(f"Weights{kind}Quantizer", ["w", *names], ["wq"], "weights", domain=DOMAIN, num_bits=8,
                                per_channel=1, channel_axis=0, **attributes)
    nodes = [activation("POT", "x", "xq", threshold=4.0, num_bits=8, signed=1), quantise,
             helper.make_node("Conv", ["xq", "wq"], ["c"], "conv", pads=[1, 1, 1, 1]),
             activation("POT", "c", "y", threshold=16.0, num_bits=8, signed=1)]
    return model_of(nodes, [("w", weights), *zip(names, ranges, strict=True)]), weights


@pytest.mark.parametrize(("kind", "ranges"), [
    ("Symmetric", [[1.1, 0.9, 1.3]]), ("POT", [[1.0, 2.0, 1.0]]), ("Uniform", [[-1.0, -0.8, -2.0], [1.0, 0.8, 2.0]]),
])
def test_weights_per_channel_run_on_the_array(kind, ranges):
    model, weights = convolution(kind, ranges)
    x = np.random.default_rng(3).normal(0, 2, SHAPE).astype(np.float32)
    if kind == "Uniform":
        rounded = np.stack([uniform(each, low, high, 8) for each, low, high in zip(weights, *ranges, strict=True)])
    else:
        rounded = np.stack([symmetric(each, limit, 8, 1) for each, limit in zip(weights, *ranges, strict=True)])
    read, y = run(model, x)
    plain = read.graph
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in plain.initializer}
    pair = next(node for node in plain.node if node.op_type == "DequantizeLinear" and node.input[0] in held)
    levels, scale, zero = (held[name].astype(np.float32) for name in pair.input)
    np.testing.assert_allclose((levels - zero.reshape(-1, 1, 1, 1)) * scale.reshape(-1, 1, 1, 1), rounded, atol=1e-6)
    assert np.abs(y - symmetric(y, 16.0, 8, 1)).max() == 0
    network = compile_network(model.SerializeToString())
    assert [layer.name for layer in network.layers if hasattr(layer, "reason")] == []
    assert notes_of(read)[0].startswith("quantisers of MCT")


def test_words_of_16_bits_stay_in_float():
    nodes = [activation("POT", "x", "xq", threshold=4.0, num_bits=8, signed=1),
             helper.make_node("HardSwish", ["xq"], ["h"], "function"),
             activation("POT", "h", "y", threshold=4.0, num_bits=16, signed=1)]
    read = read_model(model_of(nodes).SerializeToString())
    assert [node.op_type for node in read.graph.node].count("QuantizeLinear") == 1
    assert any(note.startswith("1 tensor") for note in notes_of(read))


def test_a_table_of_levels_is_refused_with_the_export_that_has_none():
    node = helper.make_node("WeightsLUTPOTQuantizer", ["x", "lut", "limit"], ["y"], "table", domain=DOMAIN, num_bits=4)
    with pytest.raises(UnsupportedNodeError, match="table of values") as caught:
        read_model(model_of([node], [("lut", [1.0, 2.0]), ("limit", [1.0])]).SerializeToString())
    assert "FAKELY_QUANT" in str(caught.value)
