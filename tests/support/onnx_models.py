"""Small quantised ONNX models with random weights, the same network in either form.

    model = ModelBuilder("qdq", seed=1)
    x = model.input((1, 3, 8, 8))
    y = model.relu(model.conv(x, 4, kernel=3, pads=(1, 1, 1, 1)))
    content = model.finish(y)

Output scales are chosen so that results fill the int8 range and some saturate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FORMS = ("qdq", "qoperator")
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
_SPREAD = 74.0
"""Standard deviation of uniform int8 values."""

_TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


@dataclass(frozen=True)
class Value:
    """An integer tensor of the model being built."""

    name: str
    shape: tuple[int, ...]
    scale: np.float32
    zero_point: int


class ModelBuilder:
    """Adds operators one by one; ``zero_point`` None draws one per tensor, and 0 makes the model symmetric.

    Of the output channels of what has weights, a share of ``pruned`` has weights of zero, and some no bias either.
    """

    pruned = 0.0

    def __init__(self, form: str, *, seed: int = 0, dtype: type = np.int8, zero_point: int | None = 0) -> None:
        self.form, self.dtype, self.zero_point = form, dtype, zero_point
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.values = 0
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, shape: tuple[int, ...], integer: bool = False) -> Value:
        """Add an input of the model: float32 and quantised, or of the integer type itself."""
        value = self.value(shape, np.float32(0.02))
        if integer:
            self.inputs.append(helper.make_tensor_value_info(value.name, _TYPES[np.dtype(self.dtype).name], shape))
            return value
        name = f"input{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.node("QuantizeLinear", [name, *self.parameters(value)], value.name)
        return value

    def conv(self, x: Value, channels: int, *, kernel: int | tuple[int, int] = 3, groups: int = 1, bias: str = "int32",
             per_channel: bool = True, clip: str = "", zero_point: int | None = None, **attrs: object) -> Value:
        """Add a convolution; ``bias`` is int32, float32 (QDQ) or none.

        ``clip`` names an operator between convolution and quantisation (QDQ)."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        weights = self._integers((channels, x.shape[1] // groups, *kernel))
        shape = (x.shape[0], channels, *self._pooled(x, kernel, **attrs))
        return self._weighted("Conv", x, weights, shape, bias, per_channel, clip, zero_point, 0,
                              kernel_shape=kernel, group=groups, **attrs)

    def gemm(self, x: Value, outputs: int, *, bias: str = "int32", per_channel: bool = True, transposed: bool = True,
             **attrs: object) -> Value:
        """Add a matrix product with constant weights, (outputs, inputs) if ``transposed``."""
        weights = self._integers((outputs, x.shape[1]) if transposed else (x.shape[1], outputs))
        return self._weighted("Gemm", x, weights, (1, outputs), bias, per_channel, "", None, 0 if transposed else 1,
                              transB=int(transposed), **attrs)

    def matmul(self, x: Value, outputs: int, *, per_channel: bool = True) -> Value:
        """Add a MatMul of rows with constant weights."""
        weights = self._integers((x.shape[-1], outputs))
        return self._weighted("MatMul", x, weights, (*x.shape[:-1], outputs), "none", per_channel, "", None, 1)

    def add(self, a: Value, b: Value, zero_point: int | None = None) -> Value:
        """Add two tensors."""
        out = self.value(a.shape, np.float32((a.scale + b.scale) * self.rng.uniform(0.5, 0.9)), zero_point)
        self._operator("Add", (a, b), out)
        return out

    def average(self, x: Value, kernel: int = 0, scale: float | None = None, **attrs: object) -> Value:
        """Add an average over windows, or over the whole image if ``kernel`` is 0."""
        if not kernel:
            out = self.value((*x.shape[:2], 1, 1), np.float32(x.scale * 0.4) if scale is None else np.float32(scale))
            self._operator("GlobalAveragePool", (x,), out)
            return out
        shape = (*x.shape[:2], *self._pooled(x, (kernel, kernel), **attrs))
        out = self.value(shape, np.float32(x.scale * 0.6) if scale is None else np.float32(scale))
        self._operator("AveragePool", (x,), out, kernel_shape=(kernel, kernel), **attrs)
        return out

    def max_pool(self, x: Value, kernel: int = 2, **attrs: object) -> Value:
        """Add max pooling."""
        shape = (*x.shape[:2], *self._pooled(x, (kernel, kernel), **attrs))
        return self.moved("MaxPool", x, shape, kernel_shape=(kernel, kernel), **attrs)

    def concat(self, parts: Sequence[Value], scale: np.float32, axis: int = 1) -> Value:
        """Add a concatenation; the result has a quantisation of its own."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        out = self.value(tuple(shape), scale)
        if self.form == "qoperator":
            names = [name for part in parts for name in (part.name, *self.parameters(part))]
            self.node("QLinearConcat", [*self.parameters(out), *names], out.name, "com.microsoft", axis=axis)
        else:
            names = [self.dequantised(part) for part in parts]
            self.quantised(self.node("Concat", names, f"float{len(self.nodes)}", axis=axis), out)
        return out

    def float_output(self, name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        """Return the type of a float tensor that becomes an output as it is."""
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    def split(self, x: str, outputs: Sequence[str], sizes: Sequence[int], axis: int = 1) -> None:
        """Add a Split of any tensor."""
        sizes_name = self.constant(np.array(sizes, np.int64))
        name = f"Split{len(self.nodes)}"
        self.nodes.append(helper.make_node("Split", [x, sizes_name], list(outputs), name, axis=axis))

    def relu(self, x: Value) -> Value:
        """Add a ReLU between quantisations; in the QOperator form on integers, for which 0 is the zero point."""
        return self.moved("Relu", x, x.shape)

    def clip(self, x: Value, low: float, high: float) -> Value:
        """Add a clip to real numbers, QDQ only."""
        return self.moved("Clip", x, x.shape, extra=(self.constant(np.float32(low)), self.constant(np.float32(high))))

    def flatten(self, x: Value) -> Value:
        """Add a Flatten."""
        return self.moved("Flatten", x, (1, int(np.prod(x.shape[1:]))))

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """Add a Reshape."""
        return self.moved("Reshape", x, shape, extra=(self.constant(np.array(shape, np.int64)),))

    def output(self, value: Value, integer: bool = False) -> None:
        """Make a tensor an output of the model: dequantised, or as it is."""
        name = value.name
        kind = _TYPES[np.dtype(self.dtype).name]
        if not integer:
            name, kind = f"output{len(self.outputs)}", TensorProto.FLOAT
            self.node("DequantizeLinear", [value.name, *self.parameters(value)], name)
        self.outputs.append(helper.make_tensor_value_info(name, kind, value.shape))

    def finish(self, *values: Value) -> bytes:
        """Return the model whose outputs are ``values``, dequantised, besides those already made."""
        for value in values:
            self.output(value)
        return self.proto().SerializeToString()

    def proto(self) -> onnx.ModelProto:
        """Return the model as it is."""
        graph = helper.make_graph(self.nodes, "small", self.inputs, self.outputs, self.initializers)
        return helper.make_model(graph, opset_imports=OPSETS, ir_version=8)

    def constant(self, array: np.ndarray) -> str:
        """Add a constant and return its name."""
        name = f"constant{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, inputs: Sequence[str], output: str, domain: str = "", **attrs: object) -> str:
        """Add any node and return the name of its output."""
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name, domain=domain, **attrs))
        return output

    def dequantised(self, value: Value) -> str:
        """Add a DequantizeLinear and return the name of the float tensor."""
        return self.node("DequantizeLinear", [value.name, *self.parameters(value)], f"float{len(self.nodes)}")

    def quantised(self, name: str, value: Value) -> None:
        """Add a QuantizeLinear of the float tensor ``name`` that writes ``value``."""
        self.node("QuantizeLinear", [name, *self.parameters(value)], value.name)

    def value(self, shape: tuple[int, ...], scale: np.float32, zero_point: int | None = None) -> Value:
        """Return a new tensor, which some node is to write."""
        bounds = np.iinfo(self.dtype)
        zero = self.zero_point if zero_point is None else zero_point
        if zero is None:
            zero = int(self.rng.integers(bounds.min, bounds.max + 1))
        self.values += 1
        return Value(f"tensor{self.values}", shape, scale, zero)

    def parameters(self, value: Value) -> list[str]:
        """Return constants with the scale and zero point of ``value``."""
        return [self.constant(value.scale), self.constant(self.dtype(value.zero_point))]

    def _integers(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.rng.integers(-127, 128, shape).astype(np.int8)

    def _pooled(self, x: Value, kernel: tuple[int, int], *, strides: Sequence[int] = (1, 1),
                pads: Sequence[int] = (0, 0, 0, 0), dilations: Sequence[int] = (1, 1), ceil_mode: int = 0,
                **_: object) -> tuple[int, ...]:
        sizes = []
        for i, n in enumerate(x.shape[2:]):
            room = n + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1
            steps = -(-room // strides[i]) if ceil_mode else room // strides[i]
            # A window of ceil_mode that would begin behind the image does not count.
            sizes.append(steps + (not ceil_mode or steps * strides[i] < n + pads[i]))
        return tuple(sizes)

    def _weighted(self, op: str, x: Value, weights: np.ndarray, shape: tuple[int, ...], bias: str, per_channel: bool,
                  clip: str, zero_point: int | None, axis: int, **attrs: object) -> Value:
        channels, terms = weights.shape[axis], weights.size / weights.shape[axis]
        w_scale = self.rng.uniform(0.004, 0.01, channels if per_channel else ()).astype(np.float32)
        y_scale = np.float32(x.scale * np.mean(w_scale) * np.sqrt(terms) * _SPREAD**2 / 60)
        out = self.value(shape, y_scale, zero_point)
        bias_scale = (x.scale * w_scale).astype(np.float32)
        levels = self.rng.integers(-20000, 20000, channels).astype(np.int32)
        if self.pruned:
            gone = self.rng.random(channels) < self.pruned
            np.moveaxis(weights, axis, 0)[gone] = 0
            levels[gone & (self.rng.random(channels) < 0.7)] = 0
        w = [self.constant(weights), self.constant(w_scale), self.constant(np.zeros_like(w_scale, np.int8))]
        if self.form == "qoperator":
            b = [self.constant(levels)] if bias == "int32" else []
            y = self.parameters(out)
            inputs = [x.name, *self.parameters(x), *w]
            if op == "Gemm":
                self.node("QGemm", [*inputs, *(b or [""]), *y], out.name, "com.microsoft", **attrs)
            else:
                self.node(f"QLinear{op}", [*inputs, *y, *b], out.name, **attrs)
            return out
        inputs = [self.dequantised(x), self.node("DequantizeLinear", w, f"weights{len(self.nodes)}", axis=axis)]
        if bias == "int32":
            parameters = [self.constant(levels), self.constant(bias_scale),
                          self.constant(np.zeros_like(bias_scale, np.int32))]
            inputs.append(self.node("DequantizeLinear", parameters, f"bias{len(self.nodes)}", axis=0))
        elif bias == "float32":
            inputs.append(self.constant((levels * bias_scale * np.float32(1.0003)).astype(np.float32)))
        result = self.node(op, inputs, f"float{len(self.nodes)}", **attrs)
        self.quantised(self.node(clip, [result], f"float{len(self.nodes)}") if clip else result, out)
        return out

    def _operator(self, op: str, inputs: tuple[Value, ...], out: Value, **attrs: object) -> None:
        if self.form == "qoperator":
            names = [name for value in inputs for name in (value.name, *self.parameters(value))]
            self.node(f"QLinear{op}", [*names, *self.parameters(out)], out.name, "com.microsoft", **attrs)
        else:
            names = [self.dequantised(value) for value in inputs]
            self.quantised(self.node(op, names, f"float{len(self.nodes)}", **attrs), out)

    def moved(self, op: str, x: Value, shape: tuple[int, ...], extra: tuple[str, ...] = (), **attrs: object) -> Value:
        """Add an operator that keeps the quantisation of ``x``."""
        out = self.value(shape, x.scale, x.zero_point)
        if self.form == "qoperator":
            self.node(op, [x.name, *extra], out.name, **attrs)
            return out
        result = self.node(op, [self.dequantised(x), *extra], f"float{len(self.nodes)}", **attrs)
        self.quantised(result, out)
        return out
