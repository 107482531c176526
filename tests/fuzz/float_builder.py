"""The same network in float, by the same calls as the quantised one."""

import numpy as np
from onnx import TensorProto, helper

from tests.support.onnx_models import ModelBuilder, Value


class FloatBuilder(ModelBuilder):
    """Builds with no integers: quantisation is nothing."""

    def dequantised(self, value: Value) -> str:
        return value.name

    def quantised(self, name: str, value: Value) -> None:
        node = next(node for node in self.nodes if name in node.output)
        node.output[list(node.output).index(name)] = value.name

    def input(self, shape: tuple[int, ...], integer: bool = False) -> Value:
        value = self.value(shape, np.float32(0.02))
        self.inputs.append(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, shape))
        return value

    def output(self, value: Value, integer: bool = False) -> None:
        self.outputs.append(self.float_output(value.name, value.shape))

    def _weighted(self, op: str, x: Value, weights: np.ndarray, shape: tuple[int, ...], bias: str, per_channel: bool,
                  clip: str, zero_point: int | None, axis: int, **attrs: object) -> Value:
        channels, terms = weights.shape[axis], weights.size / weights.shape[axis]
        out = self.value(shape, np.float32(0.02))
        inputs = [x.name, self.constant((weights / (74 * np.sqrt(terms))).astype(np.float32))]
        if bias != "none":
            inputs.append(self.constant(self.rng.normal(0, 0.3, channels).astype(np.float32)))
        result = self.node(op, inputs, f"float{len(self.nodes)}", **attrs)
        self.quantised(self.node(clip, [result], f"float{len(self.nodes)}") if clip else result, out)
        return out
