"""The ONNX model that an integer network of PULP becomes: all of 8 bits stands for itself, with a scale of 1."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct
from tilewright.compiler.pulp.shifted_levels import ShiftRequantisation

__all__ = ["ByteModel"]

_OPSET, _IR_VERSION = 17, 8
_MICROSOFT = "com.microsoft"
_ONE = np.float32(1)


class ByteModel:
    """Nodes and constants of the model that is made, in order; ``shapes`` are those of the file's tensors, if known.

    ``notes`` are for the user.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self.shapes = shapes or {}
        self.notes: list[str] = []
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, name: str, value: np.ndarray) -> str:
        """Add a constant and return its name."""
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value) if value.ndim else value, name))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, name: str = "", **attributes: object) -> str:
        """Add a node and return its output."""
        domain = {"domain": _MICROSOFT} if kind in ("QGemm", "QLinearAdd") else {}
        self._nodes.append(helper.make_node(kind, list(inputs), [output], name=name or output, **domain, **attributes))
        return output

    def copied(self, node: onnx.NodeProto, inputs: Sequence[str], output: str) -> None:
        """Add a node as it is but for the names of its inputs and its first output, the only one."""
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(inputs)
        del copy.output[:]
        copy.output.append(output)
        self._nodes.append(copy)

    def numbers(self, name: str, dtype: str, zero: int = 0, scale: np.ndarray | np.float32 = _ONE) -> tuple[str, str]:
        """Add scale and zero point of a tensor, and return their names."""
        scales = np.asarray(scale, np.float32)
        return (self.constant(f"{name}:scale", scales),
                self.constant(f"{name}:zero", np.full(scales.shape, zero, dtype)))

    def product(self, source: ConstantProduct, names: tuple[str, str], biases: np.ndarray, scales: np.ndarray,
                zero: int) -> None:
        """Add a QLinearConv or QGemm, of int32 ``biases`` and float32 ``scales``; ``names`` of node and output.

        The output is of its input's type, with ``zero`` added to it after rounding.
        """
        node, output = names
        weights = self.constant(f"{output}:weights", source.weights)
        given = (source.x.name, *self.numbers(f"{output}:x", source.x.dtype, source.x.zero), weights,
                 *self.numbers(f"{output}:weights", "int8", 0, scales))
        own = self.numbers(f"{output}:levels", source.x.dtype, zero)
        bias = self.constant(f"{output}:bias", biases)
        if source.dense:
            self.node("QGemm", (*given, bias, *own), output, node, transB=1)
        else:
            self.node("QLinearConv", (*given, *own, bias), output, node, **source.attributes)

    def shifted_product(self, source: ConstantProduct, names: tuple[str, str], numbers: ShiftRequantisation,
                        levels: ByteLevels) -> None:
        """Add a product whose sums are multiplied and shifted; ``names`` of node and output, stored like ``levels``.

        It is computed in float64 on sums in float32, which are exact below 2**24 and 2**53.
        """
        node, output = names
        weights = self.constant(f"{output}:weights", source.weights)
        sums = self.node("Gemm" if source.dense else "Conv",
                         [self.real(source.x, f"{output}:x"),
                          self.real(ByteLevels(weights, "int8"), f"{output}:real weights")],
                         f"{output}:sums", node, **({"transB": 1} if source.dense else source.attributes))
        factors, addends = (np.ldexp(np.array(each, np.float64), -numbers.shift).reshape(source.by_channel)
                            for each in (numbers.multipliers, numbers.addends))
        wide = self.node("Cast", [sums], f"{output}:wide", to=TensorProto.DOUBLE)
        times = self.node("Mul", [wide, self.constant(f"{output}:factors", factors)], f"{output}:times")
        plus = self.node("Add", [times, self.constant(f"{output}:addends", addends)], f"{output}:plus")
        floor = self.node("Floor", [plus], f"{output}:floor")
        narrow = self.node("Cast", [floor], f"{output}:narrow", to=TensorProto.FLOAT)
        self.node("QuantizeLinear", [narrow, *self.numbers(f"{output}:levels", levels.dtype, levels.zero)], output)

    def real(self, levels: ByteLevels, name: str) -> str:
        """Return levels as float32."""
        return self.node("DequantizeLinear", (levels.name, *self.numbers(f"{name}:numbers", levels.dtype, levels.zero)),
                         name)

    def real_product(self, source: ConstantProduct, names: tuple[str, str], biases: np.ndarray) -> None:
        """Add the sums of a product in float32, which is exact below 2**24."""
        node, output = names
        weights = self.constant(f"{output}:weights", source.weights)
        inputs = [self.real(source.x, f"{output}:x"), self.real(ByteLevels(weights, "int8"), f"{output}:real weights"),
                  self.constant(f"{output}:bias", biases.astype(np.float32))]
        self.node("Gemm" if source.dense else "Conv", inputs, output, node,
                  **({"transB": 1} if source.dense else source.attributes))

    def whole_product(self, source: ConstantProduct, names: tuple[str, str], biases: np.ndarray) -> None:
        """Add the sums of a matrix product in int32, as ONNX Runtime computes a Gemm of levels.

        What leaves it is float32, to which sums from 2**24 on are rounded.
        """
        node, output = names
        weights = self.constant(f"{output}:weights", source.weights)
        inputs = [self.real(source.x, f"{output}:x"), self.real(ByteLevels(weights, "int8"), f"{output}:real weights")]
        if biases.any():
            levels = self.constant(f"{output}:bias", biases.astype(np.int32))
            one = self.constant(f"{output}:bias scale", np.array(_ONE))
            inputs.append(self.node("DequantizeLinear", [levels, one], f"{output}:real bias"))
        self.node("Gemm", inputs, output, node, transB=1)

    def finished(self, name: str, inputs: Sequence[onnx.ValueInfoProto],
                 outputs: Sequence[onnx.ValueInfoProto]) -> onnx.ModelProto:
        """Return the model."""
        graph = helper.make_graph(self._nodes, name, inputs, outputs, self._constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
