"""Random graphs over one dimension and over rows: audio, sensors, products of several rows with a matrix."""

import numpy as np

from tests.fuzz.choices import Choices
from tests.fuzz.dead_nodes import without_dead_nodes
from tests.fuzz.fuzz_graph import FuzzGraph
from tests.support.dense_layers import Dense, add_dense
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["line_graph"]

_TYPES: tuple[tuple[type, int | None], ...] = ((np.int8, 0), (np.int8, None), (np.uint8, None))
_SHAPES = ((1, 4, 16), (1, 3, 21), (1, 8, 40), (1, 1, 33), (5, 12), (1, 6, 10), (2, 3, 8), (1, 3, 4, 6))
_MAX_ELEMENTS = 2048


def line_graph(choices: Choices, form: str) -> FuzzGraph:
    """Return a graph in ``form``, ``qdq`` or ``qoperator``, whose first tensor has two or three dimensions."""
    dtype, zero_point = choices.pick(_TYPES)
    model = _LineBuilder(choices, form, seed=choices.below(1 << 16), dtype=dtype, zero_point=zero_point)
    values = [model.input(choices.pick(_SHAPES), integer=choices.chance(15))]
    line = len(values[0].shape) == 3 and values[0].shape[0] == 1 and not choices.chance(25)
    for _ in range(choices.between(1, 7)):
        value, line = (model.line_step if line else model.rows_step)(values[-1], values)
        values.append(value)
    if choices.chance(40):
        values.append(model.classified(values[-1]))
    model.output(values[-1], integer=choices.chance(15))
    if choices.chance(20) and len(values) > 2:
        model.output(values[-2])
    proto = without_dead_nodes(model.proto())
    return FuzzGraph(proto, form, tuple(node.op_type for node in proto.graph.node))


class _LineBuilder(ModelBuilder):
    """Adds operators that ``choices`` draw."""

    def __init__(self, choices: Choices, form: str, **options) -> None:
        super().__init__(form, **options)
        self.choices = choices

    def line_step(self, x: Value, values: list[Value]) -> tuple[Value, bool]:
        """Add an operator on (1, channels, length); tell whether its result is that too."""
        steps = (self.conv1d, self.conv1d, self.conv1d, self.causal, self.max_pool1d, self.average1d, self.residual,
                 self.activated, self.joined, self.cut, self.transposed_conv1d, self.normalised)
        if self.choices.chance(10):
            return self.exchanged(x), False
        if self.choices.chance(10) and x.shape[2] > 1:
            return self.global_average(x), True
        y = self.choices.pick(steps)(x)
        return (y if np.prod(y.shape) <= _MAX_ELEMENTS else self.conv1d(x)), True

    def rows_step(self, x: Value, values: list[Value]) -> tuple[Value, bool]:
        """Add an operator on (…, rows, channels); tell whether its result is (1, channels, length)."""
        if len(x.shape) == 3 and x.shape[0] == 1 and self.choices.chance(20):
            return self.exchanged(x), True
        step = self.choices.pick((self.dense_rows, self.dense_rows, self.activated, self.residual_rows))
        return step(x), False

    def conv1d(self, x: Value) -> Value:
        choices, channels, length = self.choices, x.shape[1], x.shape[2]
        kernel, dilation = choices.pick((3, 1, 5, 2, 7)), choices.pick((1, 1, 2, 4))
        groups = choices.pick((1, 1, channels))
        outputs = channels if groups > 1 else choices.pick((4, 8, 3, 1, 12))
        pads = choices.pick(([kernel // 2] * 2, [0, 0], [dilation * (kernel - 1), 0], [0, kernel - 1]))
        stride = choices.pick((1, 1, 2, 3))
        size = (length + sum(pads) - dilation * (kernel - 1) - 1) // stride + 1
        if length + sum(pads) < dilation * (kernel - 1) + 1:
            kernel, dilation, pads, stride, size = 1, 1, [0, 0], 1, length
        weights = self._integers((outputs, channels // groups, kernel))
        clip = "Relu" if self.form == "qdq" and choices.chance(25) else ""
        return self._weighted("Conv", x, weights, (1, outputs, size), choices.pick(("int32", "none")),
                              not choices.chance(50), clip, None, 0, kernel_shape=[kernel], group=groups, pads=pads,
                              strides=[stride], dilations=[dilation])

    def causal(self, x: Value) -> Value:
        dilation = self.choices.pick((1, 2, 3))
        pads = self.constant(np.array([0, 0, 2 * dilation, 0, 0, 0], np.int64))
        zero = self.constant(self.dtype(x.zero_point) if self.form == "qoperator" else np.float32(0))
        padded = self.moved("Pad", x, (1, x.shape[1], x.shape[2] + 2 * dilation), extra=(pads, zero))
        weights = self._integers((x.shape[1], 1, 3))
        return self._weighted("Conv", padded, weights, x.shape, "int32", True, "", None, 0, kernel_shape=[3],
                              group=x.shape[1], dilations=[dilation])

    def max_pool1d(self, x: Value) -> Value:
        kernel, stride = self.choices.pick(((2, 2), (3, 1), (4, 3), (1, 1)))
        if x.shape[2] < kernel:
            return self.activated(x)
        size = (x.shape[2] - kernel) // stride + 1
        return self.moved("MaxPool", x, (1, x.shape[1], size), kernel_shape=[kernel], strides=[stride])

    def average1d(self, x: Value) -> Value:
        kernel = min(self.choices.pick((2, 3, 5)), x.shape[2])
        out = self.value((1, x.shape[1], x.shape[2] - kernel + 1), np.float32(x.scale * 0.6))
        self._operator("AveragePool", (x,), out, kernel_shape=[kernel], strides=[1])
        return out

    def global_average(self, x: Value) -> Value:
        out = self.value((1, x.shape[1], 1), np.float32(x.scale * 0.4))
        self._operator("GlobalAveragePool", (x,), out)
        return out

    def residual(self, x: Value) -> Value:
        weights = self._integers((x.shape[1], x.shape[1], 1))
        return self.add(x, self._weighted("Conv", x, weights, x.shape, "int32", True, "", None, 0, kernel_shape=[1]))

    def residual_rows(self, x: Value) -> Value:
        return self.add(x, self.dense_rows(x, x.shape[-1]))

    def activated(self, x: Value) -> Value:
        if self.form == "qoperator":
            return self.add(x, x) if self.dtype is np.uint8 else self.moved("Relu", x, x.shape)
        if self.choices.chance(50):
            return self.moved("Relu", x, x.shape)
        out = self.value(x.shape, np.float32(1 / 128))
        result = self.node(self.choices.pick(("Sigmoid", "Tanh", "HardSwish")), [self.dequantised(x)],
                           f"float{len(self.nodes)}")
        self.quantised(result, out)
        return out

    def joined(self, x: Value) -> Value:
        other = self.conv1d(x)
        axis = 1 if other.shape[2] == x.shape[2] else 2 if other.shape[1] == x.shape[1] else 0
        return self.concat([x, other], x.scale, axis) if axis else other

    def cut(self, x: Value) -> Value:
        axis = self.choices.pick((2, 1))
        size = x.shape[axis]
        start = self.choices.between(0, size - 1)
        along = self.choices.pick((axis, axis - 3))
        bounds = [self.constant(np.array([each], np.int64)) for each in (start, size, along)]
        shape = list(x.shape)
        shape[axis] = size - start
        return self.moved("Slice", x, tuple(shape), extra=tuple(bounds))

    def transposed_conv1d(self, x: Value) -> Value:
        if self.form == "qoperator":
            return self.conv1d(x)
        stride, outputs = self.choices.pick((2, 1, 3)), self.choices.pick((4, 3))
        weights = self._integers((x.shape[1], outputs, 4))
        w = [self.constant(weights), self.constant(np.float32(0.007)), self.constant(np.int8(0))]
        inputs = [self.dequantised(x), self.node("DequantizeLinear", w, f"weights{len(self.nodes)}")]
        out = self.value((1, outputs, (x.shape[2] - 1) * stride + 4), np.float32(x.scale * 3))
        self.quantised(self.node("ConvTranspose", inputs, f"float{len(self.nodes)}", kernel_shape=[4],
                                 strides=[stride]), out)
        return out

    def normalised(self, x: Value) -> Value:
        if self.form == "qoperator":
            return self.conv1d(x)
        gains = [self.constant(self.rng.uniform(0.5, 1.5, x.shape[1]).astype(np.float32)) for _ in range(4)]
        out = self.value(x.shape, np.float32(x.scale * 1.5))
        self.quantised(self.node("BatchNormalization", [self.dequantised(x), *gains], f"float{len(self.nodes)}"), out)
        return out

    def exchanged(self, x: Value) -> Value:
        return self.moved("Transpose", x, (1, x.shape[2], x.shape[1]), perm=[0, 2, 1])

    def dense_rows(self, x: Value, outputs: int = 0) -> Value:
        """Add a product of the rows with a constant matrix."""
        choices, outputs = self.choices, outputs or self.choices.pick((6, 4, 1, 9))
        if self.form == "qdq":
            op = "MatMul" if len(x.shape) != 2 else choices.pick(("MatMul", "Gemm"))
            return add_dense(self, x, Dense(
                outputs=outputs, op=op, bias=choices.pick(("int32", "float32", "none")),
                bias_shape=choices.pick((None, None, (1, outputs), (1,))), clip=choices.pick(("", "", "Relu")),
                trans_b=op == "Gemm" and choices.chance(50), per_channel=choices.chance(30)))
        weights = self._integers((x.shape[-1], outputs))
        if len(x.shape) == 2 and choices.chance(50):
            return self._weighted("Gemm", x, weights, (x.shape[0], outputs), choices.pick(("int32", "none")), True, "",
                                  None, 1)
        return self._weighted("MatMul", x, weights, (*x.shape[:-1], outputs), "none", choices.chance(50), "", None, 1)

    def classified(self, x: Value) -> Value:
        """Add a dense layer behind a Flatten."""
        flat = self.reshape(x, (1, int(np.prod(x.shape))))
        if self.form == "qdq":
            return add_dense(self, flat, Dense(outputs=5))
        return self.gemm(flat, 5)
