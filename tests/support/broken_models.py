"""Models broken in one way each, as a new user might have them: what the commands say of them is docs/errors.md."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.float_models import FloatBuilder, classifier
from tests.support.onnx_models import ModelBuilder

NEWER_OPSET = 999
"""An operator set that no ONNX Runtime knows yet."""


def _quantised(**changes: np.ndarray | None) -> onnx.ModelProto:
    """Return a quantised convolution ``conv`` in Q/DQ form, its constants as in ``changes``.

    These are ``weights``, ``bias``, and the scales ``x_scale``, ``w_scale``, ``b_scale``, ``y_scale``.
    """
    rng = np.random.default_rng(0)
    values = {"x_scale": np.float32(0.05), "w_scale": np.float32(0.01), "b_scale": np.float32(0.0005),
              "y_scale": np.float32(0.1), "weights": rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
              "bias": rng.integers(-99, 99, 4).astype(np.int32), **changes}
    nodes = [helper.make_node(op, inputs, [output], name, **attrs) for op, name, inputs, output, attrs in (
        ("QuantizeLinear", "quantise_x", ["image", "x_scale", "zero"], "x_int8", {}),
        ("DequantizeLinear", "dequantise_x", ["x_int8", "x_scale", "zero"], "x", {}),
        ("DequantizeLinear", "dequantise_w", ["weights", "w_scale"], "w", {}),
        ("DequantizeLinear", "dequantise_b", ["bias", "b_scale"], "b", {}),
        ("Conv", "conv", ["x", "w", "b"], "y", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("QuantizeLinear", "quantise_y", ["y", "y_scale", "zero"], "y_int8", {}),
        ("DequantizeLinear", "dequantise_y", ["y_int8", "y_scale", "zero"], "result", {}))]
    values["zero"] = np.int8(0)
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, 8, 8))],
                              [helper.make_tensor_value_info("result", TensorProto.FLOAT, (1, 4, 8, 8))], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _float(*nodes: onnx.NodeProto, dtype: int = TensorProto.FLOAT, constants: Mapping[str, np.ndarray] = {},
           shape: tuple[int, ...] = (1, 3, 8, 8), result: tuple[int, ...] = (1, 3, 8, 8)) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes), "net", [helper.make_tensor_value_info("image", dtype, shape)],
        [helper.make_tensor_value_info("result", dtype, result)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _no_onnx() -> bytes:
    return b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"


def _git_lfs() -> bytes:
    return (b"version https://git-lfs.github.com/spec/v1\n"
            b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")


def _empty() -> bytes:
    return b""


def _cut_short() -> bytes:
    content = classifier().SerializeToString()
    return content[:len(content) // 2]


def _cycle() -> onnx.ModelProto:
    return _float(helper.make_node("Add", ["image", "c"], ["b"], "first"),
                  helper.make_node("Relu", ["b"], ["c"], "second"),
                  helper.make_node("Relu", ["b"], ["result"], "last"))


def _missing() -> onnx.ModelProto:
    return _float(helper.make_node("Relu", ["image"], ["a"], "first"),
                  helper.make_node("Add", ["a", "skip"], ["result"], "join"))


def _lstm() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    constants = {"w": rng.normal(size=(1, 16, 24)), "r": rng.normal(size=(1, 16, 4))}
    return _float(helper.make_node("Reshape", ["image", "shape"], ["rows"], "rows"),
                  helper.make_node("ReduceSum", ["rows", "axes"], ["sums"], "sums", keepdims=0),
                  helper.make_node("Cast", ["sums"], ["lengths"], "lengths", to=TensorProto.INT32),
                  helper.make_node("LSTM", ["rows", "w", "r", "", "lengths"], ["result"], "memory", hidden_size=4),
                  result=(8, 1, 1, 4), constants={name: value.astype(np.float32) for name, value in constants.items()}
                  | {"shape": np.array([8, 1, 24], np.int64), "axes": np.array([0, 2], np.int64)})


def _determinant() -> onnx.ModelProto:
    return _float(helper.make_node("Reshape", ["image", "shape"], ["rows"], "rows"),
                  helper.make_node("Det", ["rows"], ["result"], "determinant"), result=(3,),
                  constants={"shape": np.array([3, 8, 8], np.int64)})


def _suppression() -> onnx.ModelProto:
    builder = FloatBuilder()
    x = builder.conv(builder.input((1, 3, 8, 8)), 3, 5)
    flat = builder.node("Reshape", x, builder.constant(np.array([1, 5, 64], np.int64)))
    boxes = builder.node("Transpose", builder.node("Slice", flat, *(
        builder.constant(np.array([each], np.int64)) for each in (0, 4, 1))), perm=[0, 2, 1])
    scores = builder.node("Slice", flat, *(builder.constant(np.array([each], np.int64)) for each in (4, 5, 1)))
    chosen = builder.node("NonMaxSuppression", boxes, scores, builder.constant(np.array([10], np.int64)))
    return builder.finish(builder.node("Cast", chosen, to=TensorProto.FLOAT))


def _dynamic() -> onnx.ModelProto:
    builder = FloatBuilder()
    return builder.finish(builder.node("Relu", builder.conv(builder.input(("N", 3, "height", "width")), 3, 4)))


def _scale(value: float) -> Callable[[], onnx.ModelProto]:
    return lambda: _quantised(y_scale=np.float32(value))


def _weights() -> onnx.ModelProto:
    return _quantised(weights=np.ones((4, 5, 3, 3), np.int8))


def _bias_type() -> onnx.ModelProto:
    return _quantised(bias=np.ones(4, np.int64))


def _bias_length() -> onnx.ModelProto:
    return _quantised(bias=np.ones(7, np.int32))


def _external() -> onnx.ModelProto:
    proto = classifier()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../weights.bin")
    return proto


def _tensor() -> onnx.ModelProto:
    return _float(helper.make_node("Relu", ["image"], ["result"], "relu"),
                  shape=(1, 3, 40000, 40000), result=(1, 3, 40000, 40000))


def _custom() -> onnx.ModelProto:
    proto = _float(helper.make_node("Sharpen", ["image"], ["result"], "sharpen", domain="com.example"))
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    return proto


def _no_output() -> onnx.ModelProto:
    proto = classifier()
    del proto.graph.output[:]
    return proto


def _kernel() -> onnx.ModelProto:
    builder = ModelBuilder("qdq", seed=2)
    builder.output(builder.conv(builder.input((1, 128, 64, 64)), 2, kernel=63, pads=(31, 31, 31, 31)))
    return builder.proto()


def _double() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    return _float(helper.make_node("Conv", ["image", "w"], ["result"], "conv"), dtype=TensorProto.DOUBLE,
                  result=(1, 4, 6, 6), constants={"w": rng.normal(size=(4, 3, 3, 3))})


def _opset() -> onnx.ModelProto:
    proto = _quantised()
    proto.opset_import[0].version = NEWER_OPSET
    return proto


def _batch() -> onnx.ModelProto:
    return classifier(batch=4)


BROKEN: Mapping[str, tuple[str, Callable[[], onnx.ModelProto | bytes]]] = {
    "no_onnx": ("no ONNX file, but a page of the server", _no_onnx),
    "git_lfs": ("a Git LFS pointer instead of the file", _git_lfs),
    "empty": ("an empty file", _empty),
    "cut_short": ("a download cut short", _cut_short),
    "cycle": ("two nodes that need each other", _cycle),
    "missing": ("a node reads a tensor that nothing computes", _missing),
    "determinant": ("an operator that is not compiled: Det", _determinant),
    "lstm": ("a recurrence whose steps an input decides", _lstm),
    "suppression": ("an operator whose result has no fixed shape: NonMaxSuppression", _suppression),
    "custom": ("an operator of one's own", _custom),
    "no_output": ("no output", _no_output),
    "dynamic": ("height and width left open", _dynamic),
    "nan_scale": ("a scale that is NaN", _scale(float("nan"))),
    "zero_scale": ("a scale of zero", _scale(0.0)),
    "negative_scale": ("a negative scale", _scale(-0.1)),
    "weights": ("weights for another number of channels", _weights),
    "bias_type": ("a bias of 64 bits", _bias_type),
    "bias_length": ("a bias of another length", _bias_length),
    "external": ("external data outside the model's folder", _external),
    "tensor": ("a tensor of 19 gigabytes", _tensor),
    "kernel": ("a kernel larger than the machine's memories", _kernel),
    "double": ("float64 instead of float32", _double),
    "opset": ("an operator set newer than any", _opset),
    "batch": ("a batch of 4", _batch),
}
"""Name → what is broken about it, and what makes the model or the bytes in its file."""


def write_broken(name: str, folder: Path) -> Path:
    """Write the model ``name`` to ``folder`` and return its file."""
    made = BROKEN[name][1]()
    path = folder / f"{name}.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    return path
