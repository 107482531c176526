"""Small float32 ONNX models with random weights, for what quantises them."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class FloatBuilder:
    """Adds operators one by one; each method returns the name of a tensor."""

    def __init__(self, seed: int = 0, opset: int = 17, ir_version: int = 8) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset, self.ir_version = opset, ir_version
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, shape: Sequence[int | str], name: str = "image", dtype: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def constant(self, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"constant{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op: str, *inputs: str, **attrs: object) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [f"{name}_out"], name, **attrs))
        return f"{name}_out"

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 3, **attrs: object) -> str:
        weights = self.rng.normal(0, np.sqrt(2 / (inputs * kernel**2)), (outputs, inputs, kernel, kernel))
        bias = self.rng.normal(0, 0.1, outputs)
        return self.node("Conv", x, self.constant(weights.astype(np.float32)), self.constant(bias.astype(np.float32)),
                         kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4, **attrs)

    def normalise(self, x: str, channels: int) -> str:
        parameters = (self.rng.uniform(0.5, 1.5, channels), self.rng.normal(0, 0.2, channels),
                      self.rng.normal(0, 0.2, channels), self.rng.uniform(0.5, 1.5, channels))
        return self.node("BatchNormalization", x, *(self.constant(p.astype(np.float32)) for p in parameters))

    def gemm(self, x: str, inputs: int, outputs: int) -> str:
        weights = self.rng.normal(0, np.sqrt(1 / inputs), (outputs, inputs)).astype(np.float32)
        return self.node("Gemm", x, self.constant(weights), self.constant(np.zeros(outputs, np.float32)), transB=1)

    def finish(self, *outputs: str) -> onnx.ModelProto:
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        inputs = [*self.inputs]
        if self.ir_version < 4:  # constants had to be inputs too
            inputs += [helper.make_tensor_value_info(c.name, c.data_type, c.dims) for c in self.constants]
        graph = helper.make_graph(self.nodes, "float", inputs, values, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                  ir_version=self.ir_version)
        shaped = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output
        for value, inferred in zip(model.graph.output, shaped, strict=True):
            value.CopyFrom(inferred)
        return model


def classifier(seed: int = 0, batch: int | str = 1, **kwargs: int) -> onnx.ModelProto:
    """Return a convolution, pooling, a normalised convolution, an average and ten outputs, for (batch, 3, 12, 10)."""
    builder = FloatBuilder(seed, **kwargs)
    x = builder.node("Relu", builder.conv(builder.input((batch, 3, 12, 10)), 3, 8))
    x = builder.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = builder.node("Relu", builder.normalise(builder.conv(x, 8, 16), 16))
    x = builder.node("Flatten", builder.node("GlobalAveragePool", x))
    return builder.finish(builder.gemm(x, 16, 10))
