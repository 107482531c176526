"""Tests of networks over one dimension and over rows: all on the datapath, and equal to ONNX Runtime."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.normal.graphs import model as of_nodes
from tests.compiler.normal.graphs import node
from tests.fuzz.twins.judge import judge
from tests.fuzz.twins.rewriting import Step as Rewriting
from tests.support.dense_layers import Dense, add_dense
from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler.network.layers import CoreLayer

Step = Callable[[ModelBuilder, Value], Value]


def conv1d(model: ModelBuilder, x: Value, channels: int = 8, kernel: int = 3, *, groups: int = 1,
           pads: tuple[int, int] = (1, 1), stride: int = 1, dilation: int = 1) -> Value:
    """Add a convolution over one dimension."""
    length = (x.shape[2] + sum(pads) - dilation * (kernel - 1) - 1) // stride + 1
    return model._weighted("Conv", x, model._integers((channels, x.shape[1] // groups, kernel)), (1, channels, length),
                           "int32", True, "", None, 0, kernel_shape=[kernel], group=groups, pads=list(pads),
                           strides=[stride], dilations=[dilation])


def causal(model: ModelBuilder, x: Value) -> Value:
    zero = model.constant(np.int8(x.zero_point) if model.form == "qoperator" else np.float32(0))
    pads = model.constant(np.array([0, 0, 4, 0, 0, 0], np.int64))
    padded = model.moved("Pad", x, (1, x.shape[1], x.shape[2] + 4), extra=(pads, zero))
    return conv1d(model, padded, x.shape[1], groups=x.shape[1], pads=(0, 0), dilation=2)


def joined(model: ModelBuilder, x: Value) -> Value:
    return model.concat([x, conv1d(model, x, 4)], x.scale, 1)


def cut(model: ModelBuilder, x: Value) -> Value:
    bounds = [model.constant(np.array([each], np.int64)) for each in (3, 9, -1)]
    return model.moved("Slice", x, (*x.shape[:2], 6), extra=tuple(bounds))


def residual(model: ModelBuilder, x: Value) -> Value:
    return model.add(x, conv1d(model, x, x.shape[1]))


def max_pool1d(model: ModelBuilder, x: Value) -> Value:
    return model.moved("MaxPool", x, (1, x.shape[1], (x.shape[2] - 3) // 2 + 1), kernel_shape=[3], strides=[2])


def global_average(model: ModelBuilder, x: Value) -> Value:
    out = model.value((1, x.shape[1], 1), np.float32(x.scale * 0.4))
    model._operator("GlobalAveragePool", (x,), out)
    return out


def classified(model: ModelBuilder, x: Value) -> Value:
    return model.gemm(model.reshape(x, (1, x.shape[1] * x.shape[2])), 5)


LINES: dict[str, Step] = {
    "plain": conv1d, "causal": causal, "joined": joined, "cut": cut, "residual": residual, "pooled": max_pool1d,
    "average": global_average, "classified": classified,
    "strided": lambda model, x: conv1d(model, x, 12, 5, pads=(4, 0), stride=3),
    "dilated": lambda model, x: conv1d(model, x, 6, 3, pads=(8, 0), dilation=4)}


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("name", LINES)
def test_one_dimension_is_an_image_of_one_row(name: str, form: str) -> None:
    model = ModelBuilder(form, seed=4, zero_point=None)
    y = LINES[name](model, conv1d(model, model.input((1, 4, 24))))
    network = assert_layers(model.finish(conv1d(model, y, 3, 1, pads=(0, 0)) if len(y.shape) == 3 else y))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


def test_the_result_of_a_convolution_transposed_meets_a_matrix_without_a_move() -> None:
    model = ModelBuilder("qdq", seed=5)
    x = conv1d(model, model.input((1, 4, 24)))
    rows = model.moved("Transpose", x, (1, 24, 8), perm=[0, 2, 1])
    back = model.moved("Transpose", add_dense(model, rows, Dense(outputs=6)), (1, 6, 24), perm=[0, 2, 1])
    network = assert_layers(model.finish(conv1d(model, back)))
    assert [type(layer) for layer in network.layers].count(CoreLayer) == 0
    assert len(network.layers) == 3


@pytest.mark.parametrize("pads", [(2, 0), (1, 1)])
def test_rows_are_padded_as_keras_does_before_a_causal_convolution(pads: tuple[int, int]) -> None:
    model = ModelBuilder("qdq", seed=5, zero_point=None)
    x = model.input((1, 24, 8))
    for _ in range(2):
        extra = (model.constant(np.array([0, pads[0], 0, 0, pads[1], 0])), model.constant(np.float32(0)))
        padded = model.moved("Pad", x, (1, x.shape[1] + 2, 8), extra=extra)
        line = model.moved("Transpose", padded, (1, 8, x.shape[1] + 2), perm=[0, 2, 1])
        y = conv1d(model, line, 8, pads=(0, 0))
        x = model.moved("Transpose", y, (1, y.shape[2], 8), perm=[0, 2, 1])
    network = assert_layers(model.finish(add_dense(model, x, Dense(outputs=6))))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


@pytest.mark.parametrize("shape", [(5, 16), (1, 5, 16), (3, 5, 16), (1, 3, 5, 16)], ids=str)
@pytest.mark.parametrize("dense", [
    Dense(outputs=8), Dense(outputs=7, bias="float32"), Dense(outputs=8, bias_shape=(1,)),
    Dense(outputs=8, clip="Relu"), Dense(outputs=8, bias="none", per_channel=True)], ids=str)
def test_rows_times_a_matrix_are_one_layer(shape: tuple[int, ...], dense: Dense) -> None:
    model = ModelBuilder("qdq", seed=6, zero_point=None)
    (layer,) = assert_layers(model.finish(add_dense(model, model.input(shape), dense))).layers
    assert not isinstance(layer, CoreLayer)


@pytest.mark.parametrize("shape", [(16, 1), (16, 5)], ids=str)
def test_a_transposed_operand_is_one_layer(shape: tuple[int, ...]) -> None:
    model = ModelBuilder("qdq", seed=7, zero_point=None)
    x = model.input(shape)
    (layer,) = assert_layers(model.finish(add_dense(model, x, Dense(outputs=8, op="Gemm", trans_a=True)))).layers
    assert not isinstance(layer, CoreLayer)


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_integer_operators_over_rows_are_one_layer(op: str) -> None:
    model = ModelBuilder("qoperator", seed=8)
    x = model.input((6, 12))
    y = model._weighted(op, x, model._integers((12, 9)), (6, 9), "int32" if op == "Gemm" else "none", True, "", None, 1)
    (layer,) = assert_layers(model.finish(y)).layers
    assert not isinstance(layer, CoreLayer)


def test_rows_with_a_bias_each_are_left_to_the_core() -> None:
    model = ModelBuilder("qdq", seed=9)
    network = assert_layers(model.finish(add_dense(model, model.input((4, 16)), Dense(outputs=8, bias_shape=(4, 8)))))
    assert any(isinstance(layer, CoreLayer) for layer in network.layers)


def test_a_slice_keeps_its_axes_where_its_result_is_an_output_too() -> None:
    model = ModelBuilder("qoperator", seed=10)
    x = conv1d(model, model.input((1, 4, 24)))
    network = assert_layers(model.finish(cut(model, x)))
    place = network.tensors["tensor3:line"].place
    assert place is not None
    assert (place.offset, place.pixel_step) == (3 * 8, 8)


def test_a_softmax_that_ends_the_model_reads_rows_as_its_product_leaves_them() -> None:
    weights = np.random.default_rng(3).integers(-127, 128, (12, 70)).astype(np.int8)
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
             node("DequantizeLinear", ["w", "t", "z"], "v"), node("MatMul", ["d", "v"], "m"),
             node("Add", ["m", "b"], "a"), node("Softmax", ["a"], "y", axis=2)]
    network = assert_layers(of_nodes(
        nodes, {"s": np.float32(.03), "t": np.float32(.01), "z": np.int8(0), "w": weights,
                "b": np.arange(70, dtype=np.float32)}, (1, 10, 12)).SerializeToString())
    assert [layer.op for layer in network.layers if isinstance(layer, CoreLayer)] == [
        "DequantizeLinear", "Add", "Softmax"]


@pytest.mark.parametrize(("op", "axis"), [("ReduceSum", 1), ("ReduceSum", 2), ("ReduceMean", 1), ("ReduceMean", 2)])
def test_a_sum_that_keeps_its_axis_before_a_product_is_a_layer(op: str, axis: int) -> None:
    model = ModelBuilder("qdq", seed=9)
    x = model.matmul(model.input((1, 12, 16)), 24)
    kept = (1, 1, 24) if axis == 1 else (1, 12, 1)
    out = model.value(kept, np.float32(0.3 if op == "ReduceSum" else 0.02), 3)
    real = [model.dequantised(x)]
    reduced = model.node(op, real, "mean", axes=[axis], keepdims=1) if op == "ReduceMean" else \
        model.node(op, [*real, model.constant(np.array([axis], np.int64))], "sum", keepdims=1)
    model.quantised(reduced, out)
    network = assert_layers(model.finish(model.matmul(out, 8)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_line_that_is_resized_is_resized_as_an_image(mode: str, turned: bool) -> None:
    model = ModelBuilder("qdq", seed=9)
    x = model.matmul(model.input((1, 12, 16)), 24)
    real = model.dequantised(x)
    if turned:      # as torch exports it
        real = model.node("Transpose", [real], "turned", perm=[0, 2, 1])
    scales = model.constant(np.array([1, 1, 2] if turned else [1, 2, 1], np.float32))
    way = "asymmetric" if mode == "nearest" else "half_pixel"
    real = model.node("Resize", [real, "", scales], "resized", mode=mode, coordinate_transformation_mode=way,
                      **({"nearest_mode": "floor"} if mode == "nearest" else {}))
    if turned:
        real = model.node("Transpose", [real], "back", perm=[0, 2, 1])
    out = model.value((1, 24, 24), x.scale, x.zero_point)
    model.quantised(real, out)
    network = assert_layers(model.finish(model.matmul(out, 8)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)


@pytest.mark.parametrize("image_first", [True, False])
def test_a_row_that_is_squeezed_or_a_line_that_is_widened_is_pooled_in_its_convolution(image_first: bool) -> None:
    sides = ("Unsqueeze", "Squeeze") if image_first else ("Squeeze", "Unsqueeze")
    kernel, pool = ([1, 3], [2]) if image_first else ([3], [1, 2])
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "xq"), node("DequantizeLinear", ["xq", "s", "z"], "xd"),
             node(sides[0], ["xd", "axis"], "r"), node("DequantizeLinear", ["w", "s", "z"], "wd"),
             node("Conv", ["r", "wd"], "c", kernel_shape=kernel),
             node("QuantizeLinear", ["c", "e", "z"], "cq"), node("DequantizeLinear", ["cq", "e", "z"], "cd"),
             node(sides[1], ["cd", "axis"], "l"),
             node("MaxPool", ["l"], "p", kernel_shape=pool, strides=pool),
             node("QuantizeLinear", ["p", "e", "z"], "pq"), node("DequantizeLinear", ["pq", "e", "z"], "y")]
    weights = np.random.default_rng(3).integers(-127, 128, (8, 4, *kernel)).astype(np.int8)
    constants = {"s": np.float32(.02), "e": np.float32(.08), "z": np.int8(0), "axis": np.int64([2]), "w": weights}
    proto = of_nodes(nodes, constants, (1, 4, 24) if image_first else (1, 4, 1, 24))
    network = assert_layers(proto.SerializeToString())
    assert [layer.kind for layer in network.layers] == ["conv"]


def test_a_row_that_is_squeezed_is_joined_as_an_image_with_a_line() -> None:
    """Behind convolutions of which some are written as those of images."""
    finding, applied = judge("lines qdq/717276", [Rewriting("lines as images", 957743)])
    assert (finding.outcome, finding.factor, len(applied)) == ("equal", 1.0, 1)
