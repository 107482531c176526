"""A float ONNX model of one of the networks, as exporters write it."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.bench.toolchains.writers.networks import NETWORKS, SHAPES, Weights

__all__ = ["float_model"]

OPSET = 17
_IR_VERSION = 8

_FUNCTIONS = {"relu": "Relu", "hard_swish": "HardSwish", "sigmoid": "Sigmoid"}


def float_model(name: str) -> onnx.ModelProto:
    """Return network ``name`` as a float32 model of opset 17; input ``image``, output ``output``."""
    net = _OnnxBuilder(SHAPES[name])
    end = NETWORKS[name](net, "image")
    net.nodes.append(helper.make_node("Identity", [end], ["output"], "end"))
    _without_identity(net.nodes)
    values = [helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPES[name])]
    ends = [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)]
    graph = helper.make_graph(net.nodes, name, values, ends, net.constants)
    model = helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)


def _without_identity(nodes: list[onnx.NodeProto]) -> None:
    """Let the last node write the output itself."""
    end = nodes.pop()
    for node in nodes:
        for names in (node.input, node.output):
            names[:] = [end.output[0] if name == end.input[0] else name for name in names]


class _OnnxBuilder:
    """Nodes and constants; `shapes` knows those of convolutions' inputs."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._weights = Weights()
        self._shapes: dict[str, tuple[int, ...]] = {"image": tuple(shape)}

    def conv(self, x: str, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
        shape = self._shapes[x]
        spatial = len(shape) - 2
        window = (kernel,) * spatial
        pad = 0 if kernel == stride else kernel // 2
        inputs = shape[1] // groups
        weights = self._weights.kernel((channels, inputs, *window), inputs * kernel**spatial)
        names = [self._constant(weights, "weight"), self._constant(self._weights.bias(channels), "bias")]
        out = tuple((extent + 2 * pad - kernel) // stride + 1 for extent in shape[2:])
        return self._add("Conv", [x, *names], (1, channels, *out), kernel_shape=window, strides=(stride,) * spatial,
                         pads=(pad,) * 2 * spatial, group=groups)

    def widen(self, x: str, channels: int) -> str:
        _, inputs, height, width = self._shapes[x]
        weights = self._weights.kernel((inputs, channels, 2, 2), inputs)
        names = [self._constant(weights, "weight"), self._constant(self._weights.bias(channels), "bias")]
        return self._add("ConvTranspose", [x, *names], (1, channels, 2 * height, 2 * width), kernel_shape=(2, 2),
                         strides=(2, 2))

    def dense(self, x: str, outputs: int) -> str:
        shape = self._shapes[x]
        weights = self._weights.kernel((outputs, shape[-1]), shape[-1])
        bias = self._constant(self._weights.bias(outputs), "bias")
        if len(shape) == 2:
            return self._add("Gemm", [x, self._constant(weights, "weight"), bias], (1, outputs), transB=1)
        y = self._add("MatMul", [x, self._constant(weights.T, "weight")], (*shape[:-1], outputs))
        return self._add("Add", [y, bias], self._shapes[y])

    def function(self, x: str, name: str) -> str:
        shape = self._shapes[x]
        if name == "silu":
            return self._add("Mul", [x, self._add("Sigmoid", [x], shape)], shape)
        if name == "hard_sigmoid":
            return self._add("HardSigmoid", [x], shape, alpha=1 / 6)
        if name == "gelu":
            y = self._add("Erf", [self._add("Div", [x, self._number(np.sqrt(2))], shape)], shape)
            y = self._add("Mul", [x, self._add("Add", [y, self._number(1)], shape)], shape)
            return self._add("Mul", [y, self._number(0.5)], shape)
        return self._add(_FUNCTIONS[name], [x], shape)

    def max_pool(self, x: str) -> str:
        _, channels, height, width = self._shapes[x]
        return self._add("MaxPool", [x], (1, channels, height // 2, width // 2), kernel_shape=(2, 2), strides=(2, 2))

    def average(self, x: str) -> str:
        shape = self._shapes[x]
        return self._add("GlobalAveragePool", [x], (*shape[:2], *(1 for _ in shape[2:])))

    def enlarge(self, x: str) -> str:
        _, channels, height, width = self._shapes[x]
        scales = self._constant(np.array([1, 1, 2, 2], np.float32), "scales")
        return self._add("Resize", [x, "", scales], (1, channels, 2 * height, 2 * width), mode="nearest",
                         nearest_mode="floor", coordinate_transformation_mode="asymmetric")

    def add(self, x: str, y: str) -> str:
        return self._add("Add", [x, y], self._shapes[x])

    def times(self, x: str, y: str) -> str:
        return self._add("Mul", [x, y], self._shapes[x])

    def product(self, x: str, y: str, scale: float = 1.0) -> str:
        shape = (*self._shapes[x][:-1], self._shapes[y][-1])
        z = self._add("MatMul", [x, y], shape)
        return z if scale == 1 else self._add("Mul", [z, self._number(scale)], shape)

    def constant_added(self, x: str, shape: Sequence[int]) -> str:
        return self._add("Add", [x, self._constant(self._weights.kernel(shape, 50), "position")], self._shapes[x])

    def concat(self, values: Sequence[str], axis: int) -> str:
        shapes = [self._shapes[x] for x in values]
        extent = sum(shape[axis] for shape in shapes)
        return self._add("Concat", values, (*shapes[0][:axis], extent, *shapes[0][axis + 1:]), axis=axis)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        return self._add("Reshape", [x, self._constant(np.array(shape, np.int64), "shape")], tuple(shape))

    def transpose(self, x: str, perm: Sequence[int]) -> str:
        return self._add("Transpose", [x], tuple(self._shapes[x][axis] for axis in perm), perm=tuple(perm))

    def softmax(self, x: str, axis: int) -> str:
        return self._add("Softmax", [x], self._shapes[x], axis=axis)

    def norm(self, x: str) -> str:
        count = self._shapes[x][-1]
        names = [self._constant(1 + self._weights.bias(count), "gain"),
                 self._constant(self._weights.bias(count), "shift")]
        return self._add("LayerNormalization", [x, *names], self._shapes[x], axis=-1, epsilon=1e-5)

    def mean(self, x: str, axis: int) -> str:
        shape = self._shapes[x]
        return self._add("ReduceMean", [x], (*shape[:axis], *shape[axis + 1:]), axes=(axis,), keepdims=0)

    def fixed(self, x: str, weights: np.ndarray) -> str:
        shape = self._shapes[x]
        return self._add("Conv", [x, self._constant(weights, "fixed")], (1, weights.shape[0], *shape[2:]),
                         kernel_shape=weights.shape[2:])

    def _add(self, op: str, inputs: Sequence[str], shape: Sequence[int], **attributes: object) -> str:
        name = f"/{op}_{len(self.nodes)}"
        output = f"{name}_output_0"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name, **attributes))
        self._shapes[output] = tuple(shape)
        return output

    def _constant(self, array: np.ndarray, what: str) -> str:
        name = f"{what}_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def _number(self, value: float) -> str:
        return self._constant(np.asarray(value, np.float32), "number")
