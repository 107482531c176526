"""Products of two computed matrices, of any rank and batch, are the datapath's and ONNX Runtime's QLinearMatMul."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import PRESETS
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.session import InferenceSession

TYPES = {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8}


def product(first, second, dtype, zeros, form="qdq", perm=None, scales=(0.05, 0.031, 1.7), relu=False):
    """Return a model of bytes a and b whose output is their quantised product; b is transposed first by ``perm``."""
    names = ("as", "az", "bs", "bz", "ys", "yz")
    values = (scales[0], zeros[0], scales[1], zeros[1], scales[2], zeros[2])
    constants = {name: np.asarray(value, np.float32 if name[1] == "s" else dtype)
                 for name, value in zip(names, values, strict=True)}
    turned = "t" if perm else "b"
    nodes = [helper.make_node("Transpose", ["b"], ["t"], perm=perm)] if perm else []
    if form == "qlinear":
        nodes.append(helper.make_node("QLinearMatMul", ["a", "as", "az", turned, "bs", "bz", "ys", "yz"], ["y"]))
    else:
        nodes += [helper.make_node("DequantizeLinear", ["a", "as", "az"], ["da"]),
                  helper.make_node("DequantizeLinear", [turned, "bs", "bz"], ["db"]),
                  helper.make_node("MatMul", ["da", "db"], ["m"], name="product"),
                  *([helper.make_node("Relu", ["m"], ["r"])] if relu else []),
                  helper.make_node("QuantizeLinear", ["r" if relu else "m", "ys", "yz"], ["y"])]
    shape = second if perm is None else [second[axis] for axis in perm]
    result = (*np.broadcast_shapes(first[:-2], shape[:-2]), first[-2], shape[-1])
    graph = helper.make_graph(
        nodes, "product", [helper.make_tensor_value_info("a", TYPES[dtype], first),
                           helper.make_tensor_value_info("b", TYPES[dtype], second)],
        [helper.make_tensor_value_info("y", TYPES[dtype], result)],
        [numpy_helper.from_array(array, key) for key, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compared(path, model, dtype, seed=0, machine="base"):
    onnx.save(model, path)
    bounds, rng = np.iinfo(dtype), np.random.default_rng(seed)
    feed = {each.name: rng.integers(bounds.min, bounds.max + 1, [d.dim_value for d in each.type.tensor_type.shape.dim])
            .astype(dtype) for each in model.graph.input}
    ours = InferenceSession(path, machine)
    for got, wanted in zip(ours.run(None, feed), onnx_session(path).run(None, feed), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return ours


def layers_of(path):
    """Return the layers of the datapath; the core at most moves what is of several images."""
    layers = compile_network(path).layers
    assert {each.op for each in layers if isinstance(each, CoreLayer)} <= {"Reshape", "Transpose"}
    return [each for each in layers if isinstance(each, Layer)]


@pytest.mark.parametrize("form", ["qdq", "qlinear"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("first", "second"), [
    ((5, 7), (7, 3)), ((1, 5, 7), (7, 3)), ((4, 5, 7), (4, 7, 3)), ((1, 2, 5, 7), (1, 2, 7, 20)),
    ((3, 2, 5, 7), (3, 2, 7, 4)), ((2, 1, 5, 7), (3, 7, 4)), ((1, 2, 2, 5, 7), (1, 2, 2, 7, 4)), ((6, 7), (3, 7, 2)),
    ((1, 4, 20, 16), (1, 1, 16, 4)), ((1, 1, 1, 1), (1, 1, 1, 1))], ids=str)
def test_any_rank_and_batch(tmp_path, first, second, dtype, form):
    path = tmp_path / "model.onnx"
    offset = 128 if dtype == np.uint8 else 0
    compared(path, product(first, second, dtype, (3 + offset, offset - 9, 5 + offset), form), dtype)
    layers = [each for each in layers_of(path) if each.factor is not None]
    assert len(layers) == np.prod(np.broadcast_shapes(first[:-2], second[:-2]), dtype=int)


@pytest.mark.parametrize("zeros", [(0, 0, 0), (-128, -128, -128), (127, 127, 127), (-128, 0, 3), (0, -128, -7)],
                         ids=str)
@pytest.mark.parametrize("machine", ["nano", "base", "large"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_zero_points_at_their_ends(tmp_path, zeros, machine, dtype):
    zeros = tuple(each + (128 if dtype == np.uint8 else 0) for each in zeros)
    compared(tmp_path / "model.onnx", product((1, 2, 9, 33), (1, 2, 33, 10), dtype, zeros), dtype, machine=machine)


@pytest.mark.parametrize(("second", "perm"), [((1, 2, 9, 7), (0, 1, 3, 2)), ((1, 9, 2, 7), (0, 2, 3, 1)),
                                              ((7, 2, 9, 1), (3, 1, 0, 2)), ((1, 7, 2, 9), (0, 2, 1, 3))], ids=str)
@pytest.mark.parametrize("form", ["qdq", "qlinear"])
def test_any_transposition(tmp_path, second, perm, form):
    path = tmp_path / "model.onnx"
    compared(path, product((1, 2, 5, 7), second, np.int8, (3, -9, 5), form, perm), np.int8)
    assert any(each.factor is not None for each in layers_of(path))


@pytest.mark.parametrize("machine", ["nano", "base", "large"])
def test_no_race_and_every_product_in_a_batch(tmp_path, machine):
    path = tmp_path / "model.onnx"
    onnx.save(product((1, 3, 17, 20), (1, 3, 20, 33), np.int8, (3, -9, 5)), path)
    compiled = compile_layers(compile_network(path), PRESETS[machine])
    check((command for _, command in compiled.program.commands()), compiled.machine)


def test_a_relu_behind_bounds_the_result(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(product((1, 2, 5, 7), (1, 2, 7, 4), np.int8, (3, -9, 5), relu=True), path)
    layers = [each for each in layers_of(path) if each.factor is not None]
    assert all(each.requantisation.low == 5 and not each.exact for each in layers)


def test_scales_too_far_apart_are_refused_by_name(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(product((1, 2, 5, 7), (1, 2, 7, 4), np.int8, (3, -9, 5), scales=(1e30, 1e30, 1e-30)), path)
    with pytest.raises(CompileError, match="product"):
        compile_network(path)


@pytest.mark.parametrize(("first", "second", "moves"), [
    ((1, 3, 20, 12), (1, 3, 12, 8),
     [("Transpose", {"perm": [0, 2, 1, 3]}, (1, 20, 3, 8)), ("Reshape", {}, (1, 20, 24))]),
    ((1, 3, 8, 12), (1, 3, 12, 20), [("Reshape", {}, (1, 24, 4, 5))]),
], ids=["tokens", "image"])
def test_heads_are_stored_side_by_side_by_their_products(tmp_path, first, second, moves):
    """As tokens of all channels, or turned, as an image's pixels: nothing is copied behind the products."""
    model, path = product(first, second, np.int8, (3, -9, 5)), tmp_path / "model.onnx"
    graph, name = model.graph, "y"
    for op, attributes, shape in moves:
        made = f"{name}{op[0]}"
        graph.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), f"{made}:shape"))
        graph.node.append(helper.make_node(op, [name, *([f"{made}:shape"] if op == "Reshape" else [])], [made],
                                           **attributes))
        name = made
    graph.output[0].CopyFrom(helper.make_tensor_value_info(name, TensorProto.INT8, shape))
    compared(path, model, np.int8)
    assert [layer.factor is not None for layer in layers_of(path)][-3:] == [True] * 3


@pytest.mark.parametrize("second", ["i", "r"], ids=["behind it", "before it"])
def test_heads_that_are_stored_turned_are_read_by_other_movements_too(tmp_path, second):
    model, path = product((1, 3, 8, 12), (1, 3, 12, 20), np.int8, (3, -9, 5)), tmp_path / "model.onnx"
    graph, shapes = model.graph, {"r": (1, 24, 20, 1), "i": (1, 24, 4, 5)}
    graph.initializer.extend(numpy_helper.from_array(np.array(shape, np.int64), f"{name}:shape")
                             for name, shape in shapes.items())
    graph.node.extend([helper.make_node("Reshape", ["y", "r:shape"], ["r"]),
                       helper.make_node("Reshape", ["r", "i:shape"], ["i"]),
                       helper.make_node("Transpose", [second], ["z"], perm=[0, 3, 1, 2])])
    shapes["z"] = tuple(shapes[second][axis] for axis in (0, 3, 1, 2))
    del graph.output[:]
    graph.output.extend(helper.make_tensor_value_info(name, TensorProto.INT8, shapes[name]) for name in "iz")
    compared(path, model, np.int8)


@pytest.mark.parametrize("heads", [1, 2])
def test_heads_of_a_split_are_read_where_they_lie(tmp_path, heads):
    model = product((1, heads, 9, 16), (1, heads, 16, 9), np.int8, (3, 0, 5), "qlinear")
    numbers = [helper.make_tensor(name, TensorProto.INT64, [len(values)], values) for name, values in (
        ("parts", [1, 1, 1]), ("parted", [1, 9, 3, heads, 16]), ("first", [0]))]
    del model.graph.input[:]
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.INT8, (1, 9, 48 * heads)))
    model.graph.initializer.extend(numbers)
    nodes = [helper.make_node("Reshape", ["x", "parted"], ["x5"]),
             helper.make_node("Transpose", ["x5"], ["turned"], perm=[2, 0, 3, 1, 4]),
             helper.make_node("Split", ["turned", "parts"], ["q", "k", "v"], axis=0),
             helper.make_node("Squeeze", ["q", "first"], ["a"]), helper.make_node("Squeeze", ["k", "first"], ["kept"]),
             helper.make_node("Transpose", ["kept"], ["b"], perm=[0, 1, 3, 2]), *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    path = tmp_path / "model.onnx"
    compared(path, model, np.int8)
    assert not any(name.startswith("q:") for each in layers_of(path) for name in each.writes)
