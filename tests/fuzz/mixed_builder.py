"""Networks that are quantised in part: some tensors are integers, others stay the floats that they are."""

from onnx import TensorProto, helper

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["MixedBuilder"]


class MixedBuilder(ModelBuilder):
    """Leaves out the quantisation of some tensors, as ``choices`` draw."""

    def __init__(self, choices: Choices, *, seed: int, dtype: type, zero_point: int | None) -> None:
        super().__init__("qdq", seed=seed, dtype=dtype, zero_point=zero_point)
        self._choices = choices
        self._floats: set[str] = set()

    def dequantised(self, value: Value) -> str:
        return value.name if value.name in self._floats else super().dequantised(value)

    def quantised(self, name: str, value: Value) -> None:
        maker = next((node for node in self.nodes if name in node.output), None)
        if maker is None or maker.op_type == "DequantizeLinear" or not self._choices.chance(30):
            super().quantised(name, value)
            return
        self._floats.add(value.name)
        self.node("Identity", [name], value.name)

    def output(self, value: Value, integer: bool = False) -> None:
        if value.name not in self._floats:
            super().output(value, integer)
            return
        name = f"output{len(self.outputs)}"
        self.node("Identity", [value.name], name)
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape))
