"""Tests of matrix products with every bias: one layer of the datapath, and ONNX Runtime's integers where it has any."""

import numpy as np
import pytest

from tests.support.dense_layers import Dense, add_dense
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.oracle.conversion import as_int8, quantise_input
from tilewright.runtime.oracle.onnx_runtime import run_reference
from tilewright.runtime.oracle.plain_sessions import PlainSession

INTEGER = [
    Dense(outputs=9), Dense(outputs=8), Dense(outputs=8, bias="float32"), Dense(outputs=8, bias_shape=(1, 8)),
    Dense(outputs=8, bias="none"), Dense(outputs=1, bias_shape=(1,)), Dense(outputs=8, op="Gemm", bias_shape=(1, 8)),
    Dense(outputs=8, op="Gemm", bias_shape=(1,)), Dense(outputs=8, op="Gemm", bias_shape=()),
    Dense(outputs=8, op="Gemm", trans_b=True, bias="float32"), Dense(outputs=8, per_channel=True, bias_shape=(1, 8)),
    Dense(outputs=8, op="Gemm", bias="none"),
    # In normal form, which is what it computes, they have neither alpha nor beta.
    Dense(outputs=8, op="Gemm", beta=2.0), Dense(outputs=8, op="Gemm", beta=0.5, bias="float32"),
    Dense(outputs=8, op="Gemm", alpha=0.5), Dense(outputs=8, op="Gemm", alpha=0.25, bias="none")]
"""Products that ONNX Runtime computes in integers."""

FLOAT = [
    Dense(outputs=8, bias="float32", bias_shape=()), Dense(outputs=8, bias_shape=(1,)), Dense(outputs=8, clip="Relu"),
    Dense(outputs=8, op="Gemm", bias="float32", bias_shape=(1, 8)),
    Dense(outputs=8, op="Gemm", per_channel=True, bias_shape=(1,), clip="Relu")]
"""Products that it computes in floats."""


def _compare(dense: Dense, seed: int) -> tuple[Layer, int]:
    """Return the one layer of a dense network, and by how many levels its result differs from ONNX Runtime's."""
    model = ModelBuilder("qdq", seed=seed, zero_point=None)
    x = model.input((1, 24))
    content = model.finish(add_dense(model, x, dense))
    network = compile_network(content)
    (layer,) = network.layers
    assert isinstance(layer, Layer)
    values = np.random.default_rng(seed).normal(0, 1.2, (1, 24)).astype(np.float32)
    expected = run_reference(content, {"input0": values})
    tensors = {layer.input: as_int8(expected[layer.input]).reshape(network.tensors[layer.input].shape)}
    result = run_network(network, tensors)[layer.output]
    difference = result.astype(int).ravel() - as_int8(expected[layer.output]).astype(int).ravel()
    return layer, int(np.abs(difference).max())


@pytest.mark.parametrize("dense", INTEGER, ids=str)
def test_is_exact_where_onnx_runtime_computes_in_integers(dense: Dense) -> None:
    for seed in range(3):
        layer, levels = _compare(dense, seed)
        assert layer.exact
        assert levels == 0


@pytest.mark.parametrize("dense", FLOAT, ids=str)
def test_is_declared_where_onnx_runtime_computes_in_floats(dense: Dense) -> None:
    for seed in range(3):
        layer, levels = _compare(dense, seed)
        assert not layer.exact
        assert levels <= 1


def test_a_product_with_bias_and_the_relu_behind_it_are_one_layer() -> None:
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    y = add_dense(model, model.input((1, 24)), Dense(outputs=8))
    content = model.finish(model.moved("Relu", y, y.shape))
    (layer,) = compile_network(content).layers
    assert isinstance(layer, Layer)


@pytest.mark.parametrize(("bias", "step", "core"), [(1.0, 1e-9, False), (0.25, 5e-9, True)])
def test_a_bias_that_int32_cannot_say_is_left_to_the_core_unless_the_sums_move_nothing(
        bias: float, step: float, core: bool) -> None:
    """A bias of 0.25 is two and a half levels: the sums tip it to either side."""
    model = ModelBuilder("qdq", seed=3)
    x = model.input((1, 4))
    weights = model.node("DequantizeLinear", [
        model.constant(np.full((4, 2), 127, np.int8)), model.constant(np.float32(step)), model.constant(np.int8(0))],
        "w")
    result = model.node("MatMul", [model.dequantised(x), weights], "p")
    result = model.node("Add", [result, model.constant(np.array([bias, 2.0], np.float32))], "s")
    out = model.value((1, 2), np.float32(0.1))
    model.quantised(result, out)
    content = model.finish(out)
    network = compile_network(content)
    assert any(isinstance(layer, CoreLayer) for layer in network.layers) is core
    for sign in (-1, 1):
        values = np.full((1, 4), sign, np.float32)
        ours = run_network(network, {network.inputs[0].name: quantise_input(network.inputs[0], values)})
        expected = PlainSession(content, "unfused", [out.name]).run({"input0": values})[out.name]
        assert np.array_equal(ours[out.name].ravel(), as_int8(expected).ravel())
        assert np.array_equal(run_reference(content, {"input0": values})[out.name], expected)


def _with_stated_bias(op: str, *, moved: bool, factor: float, zero_point: int) -> bytes:
    """Return a product with ones whose bias states ``factor`` times its scale; its input may be moved in float."""
    model = ModelBuilder("qdq", seed=5, zero_point=0)
    image = (1, 6, 2, 1) if op != "Gemm" else (1, 6)
    x = model.input(image)
    name, scale = model.dequantised(x), np.float32(0.01)
    for shape in ([1, 1, *image], list(image)) if moved else ():
        name = model.node("Reshape", [name, model.constant(np.array(shape, np.int64))], f"moved{len(shape)}")
    kernel = {"Gemm": (6, 4), "Conv": (4, 6, 1, 1), "ConvTranspose": (6, 4, 1, 1)}[op]
    weights = model.node("DequantizeLinear", [
        model.constant(np.ones(kernel, np.int8)), model.constant(scale), model.constant(np.int8(0))], "w")
    bias = model.node("DequantizeLinear", [
        model.constant(np.array([500, -300, 2000, 0], np.int32)), model.constant(np.float32(x.scale * scale * factor)),
        model.constant(np.int32(zero_point))], "b")
    y = model.value((1, 4, 2, 1) if op != "Gemm" else (1, 4), np.float32(0.001), 0)
    model.quantised(model.node(op, [name, weights, bias], "sums"), y)
    return model.finish(y)


@pytest.mark.parametrize(("factor", "zero_point"), [(1.0, 0), (1.014, 0), (2.0, 0), (1.0, 100)])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "Gemm"])
def test_a_bias_has_the_scale_that_it_states_where_it_has_in_onnx_runtime(
        op: str, moved: bool, factor: float, zero_point: int) -> None:
    content = _with_stated_bias(op, moved=moved, factor=factor, zero_point=zero_point)
    network = compile_network(content)
    (layer,) = network.layers
    assert isinstance(layer, Layer)
    levels = np.random.default_rng(5).integers(-30, 30, network.tensors[layer.input].array_shape).astype(np.int8)
    values = (levels * np.float32(0.02)).reshape((1, 6) if op == "Gemm" else (1, 6, 2, 1))
    expected = as_int8(run_reference(content, {"input0": values})["tensor2"]).astype(int)
    produced = run_network(network, {layer.input: levels})[layer.output].astype(int)
    assert np.abs(produced.ravel() - expected.ravel()).max() <= (not layer.exact)
