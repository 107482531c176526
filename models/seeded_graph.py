"""A float ONNX graph with seeded weights, built node by node with NumPy alone, for the large networks.

Weights are He-normal (He et al., "Delving Deep into Rectifiers", ICCV 2015), so that the variance is kept from layer
to layer; batch normalisations get random gains and shifts here and their statistics from `batch_statistics`.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.models.export import INPUT, OPSET

__all__ = ["SeededGraph"]

_IR_VERSION = 8
"""The one that opset 17 came with."""

_EPSILON = 1e-5
_BIAS_DEVIATION, _SHIFT_DEVIATION = 0.1, 0.2


class SeededGraph:
    """Nodes, and the weights drawn for them in the order of the calls.

    Every method but `model` adds an operator and returns the name of its output: the one given, or that of the input
    with the operator behind a slash.

    Parameters
    ----------
    seed : int
    channels : int
        Of the image, which is the value named ``INPUT``.
    """

    def __init__(self, seed: int, channels: int = 3) -> None:
        self._rng = np.random.default_rng(seed)
        self._channels = {INPUT: channels}
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, np.ndarray] = {}

    def channels(self, x: str) -> int:
        """Return how many channels the value ``x`` has."""
        return self._channels[x]

    def convolution(self, x: str, name: str, outputs: int, kernel: int = 1, *, stride: int = 1,
                    padding: int | None = None, groups: int = 1, normalised: bool = True) -> str:
        """Add a convolution, with its batch normalisation or else a bias; padded, it keeps the size if ``stride`` is 1.

        ``padding`` is half the kernel unless given.
        """
        inputs = self._channels[x] // groups
        weight = self._draw_kernel(f"{name}.weight", (outputs, inputs, kernel, kernel))
        pad = kernel // 2 if padding is None else padding
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, "group": groups}
        if not normalised:
            return self._add("Conv", [x, weight, self._draw_bias(name, outputs)], name, outputs, window)
        y = self._add("Conv", [x, weight], name, outputs, window, output=f"{name}/convolution")
        gain = self._constant(f"{name}.gain", self._rng.uniform(0.5, 1.5, outputs))
        shift = self._constant(f"{name}.shift", self._rng.normal(0, _SHIFT_DEVIATION, outputs))
        mean = self._constant(f"{name}.mean", np.zeros(outputs))
        variance = self._constant(f"{name}.variance", np.ones(outputs))
        return self._add("BatchNormalization", [y, gain, shift, mean, variance], f"{name}/normalisation", outputs,
                         {"epsilon": _EPSILON}, output=name)

    def linear(self, x: str, name: str, outputs: int, pixels: int = 1) -> str:
        """Add a fully connected layer behind a `flatten` of ``pixels`` pixels."""
        weight = self._draw_kernel(f"{name}.weight", (outputs, self._channels[x] * pixels))
        return self._add("Gemm", [x, weight, self._draw_bias(name, outputs)], name, outputs, {"transB": 1})

    def relu(self, x: str) -> str:
        """Add max(x, 0)."""
        return self._behind("Relu", [x], "relu")

    def relu6(self, x: str) -> str:
        """Add min(max(x, 0), 6)."""
        bounds = [self._constant("zero", np.zeros(())), self._constant("six", np.full((), 6))]
        return self._behind("Clip", [x, *bounds], "relu6")

    def leaky_relu(self, x: str, slope: float) -> str:
        """Add max(x, ``slope`` x), for slopes below 1."""
        return self._behind("LeakyRelu", [x], "leaky_relu", alpha=slope)

    def silu(self, x: str) -> str:
        """Add x / (1 + exp(-x)), as the two operators that ONNX writes it with."""
        return self._behind("Mul", [x, self._behind("Sigmoid", [x], "sigmoid")], "silu")

    def max_pool(self, x: str, kernel: int, stride: int, *, padding: int = 0, ceil: bool = False) -> str:
        """Add max pooling; with ``ceil`` the last windows may reach over the edge."""
        return self._behind("MaxPool", [x], "pool", kernel_shape=[kernel] * 2, strides=[stride] * 2,
                            pads=[padding] * 4, ceil_mode=int(ceil))

    def average(self, x: str) -> str:
        """Add the mean of all pixels, flattened."""
        return self.flatten(self._behind("GlobalAveragePool", [x], "average"))

    def flatten(self, x: str) -> str:
        """Add a flattening of all but the batch."""
        return self._behind("Flatten", [x], "flatten", axis=1)

    def upsample(self, x: str) -> str:
        """Add an enlargement to twice the side, each pixel repeated."""
        scales = self._constant("twice", np.array([1, 1, 2, 2]))
        return self._behind("Resize", [x, "", scales], "upsample", mode="nearest", nearest_mode="floor",
                            coordinate_transformation_mode="asymmetric")

    def add(self, x: str, y: str, name: str) -> str:
        """Add the sum of two values of one shape."""
        return self._add("Add", [x, y], name, self._channels[x], {})

    def concatenate(self, x: str, y: str, name: str) -> str:
        """Add the channels of ``x`` and those of ``y`` behind each other."""
        return self._add("Concat", [x, y], name, self._channels[x] + self._channels[y], {"axis": 1})

    def model(self, side: int, outputs: dict[str, str]) -> onnx.ModelProto:
        """Return the float32 model for one image of ``side`` x ``side``.

        ``outputs`` gives the name of each output, and the value that it is.
        """
        renamed = {value: name for name, value in outputs.items()}
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [renamed.get(name, name) for name in names]
        image = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, (1, self._channels[INPUT], side, side))
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        weights = [numpy_helper.from_array(values, name) for name, values in self._weights.items()]
        graph = helper.make_graph(self._nodes, "network", [image], ends, weights)
        model = helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
        return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)

    def _add(self, operator: str, inputs: list[str], name: str, channels: int, attributes: dict[str, object],
             output: str | None = None) -> str:
        """Add the node ``name``, whose output has its name unless another is given, and return that."""
        value = output or name
        self._nodes.append(helper.make_node(operator, inputs, [value], name, **attributes))
        self._channels[value] = channels
        return value

    def _behind(self, operator: str, inputs: list[str], what: str, **attributes: object) -> str:
        """Add a node that keeps the channels, named by its first input's layer and ``what``."""
        return self._add(operator, inputs, f"{inputs[0].partition('/')[0]}/{what}", self._channels[inputs[0]],
                         attributes)

    def _draw_kernel(self, name: str, shape: tuple[int, ...]) -> str:
        deviation = np.float32(np.sqrt(2 / np.prod(shape[1:])))
        return self._constant(name, self._rng.standard_normal(shape, np.float32) * deviation)

    def _draw_bias(self, name: str, outputs: int) -> str:
        return self._constant(f"{name}.bias", self._rng.normal(0, _BIAS_DEVIATION, outputs))

    def _constant(self, name: str, values: np.ndarray) -> str:
        self._weights[name] = values.astype(np.float32, copy=False)
        return name
