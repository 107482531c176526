"""Read an integer network of Deeploy, DORY, NEMO or MATCH: an ONNX model whose float32 scales give the same integers.

The file's nodes are followed from its inputs. What is multiplied, added to, divided and bounded behind a convolution or
matrix product becomes one requantisation, for which scales are searched and proved (:mod:`.exact_scale`).
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from tilewright.compiler.errors import UnsupportedModelError, UnsupportedNodeError, raise_all
from tilewright.compiler.normal.constant_arrays import array_of
from tilewright.compiler.pulp.byte_model import ByteModel
from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, PendingSums, RealTensor
from tilewright.compiler.pulp.pending_rules import MOVES, RULES
from tilewright.compiler.pulp.pulp_node import PulpNode, Value
from tilewright.compiler.pulp.put_levels import put_sums, whole_levels
from tilewright.compiler.pulp.tensor_shapes import shapes_of

__all__ = ["onnx_of_pulp"]

_INPUTS = {TensorProto.FLOAT: "uint8", TensorProto.UINT8: "uint8", TensorProto.INT8: "int8"}
_ON_FLOATS = ("Flatten", "Gather", "Identity", "Reshape", "Sigmoid", "Tanh")
"""ONNX's operators that may follow sums which the network hands out; each has one meaning in all versions."""
_ON_LEVELS = (*MOVES, "Add", "AveragePool", "Conv", "Gemm", "GlobalAveragePool", "MatMul", "Mul", "Pad",
              "RequantShift")
"""Operators before which sums that were cut to whole numbers are levels."""
_OUTPUTS = (TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8)


def onnx_of_pulp(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return the ONNX model of an integer network, and notes for the user.

    Raises
    ------
    BadModelError
        If the file contradicts itself.
    UnsupportedModelError, UnsupportedNodeError
        For what is not compiled; the error knows the other nodes of the kind.
    """
    return _Reading(proto).finished()


class _Reading:
    """The tensors known so far, and the model made of them."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.proto = proto
        self.made = ByteModel(shapes_of(proto))
        self.constants = {tensor.name: array_of(tensor) for tensor in proto.graph.initializer}
        self.values: dict[str, Value] = {}
        self.notes = ["computed in whole numbers, as PULP's tools define it (docs/tflite.md)"]
        self.inputs = [self._input(each) for each in proto.graph.input if each.name not in self.constants]
        self.outputs = {each.name for each in proto.graph.output}
        self.makers: dict[str, PulpNode] = {}
        self.refusals: list[UnsupportedNodeError] = []

    def _input(self, value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        kind = value.type.tensor_type.elem_type
        if kind not in _INPUTS:
            raise UnsupportedModelError(f"Input {value.name!r} must be float32, int8 or uint8, not ONNX's type {kind}",
                                        "export the network with an input of 8 bits")
        dtype, name = _INPUTS[kind], value.name
        if kind == TensorProto.FLOAT:
            name = self.made.node("QuantizeLinear", [name, *self.made.numbers(f"{name}:numbers", dtype)],
                                  f"{name}:levels")
            self.notes.append(f"input {value.name!r} is read as whole numbers from 0 to 255; state int8 as its type in "
                              "the file if it is signed")
        self.values[value.name] = ByteLevels(name, dtype)
        return value

    def finished(self) -> tuple[onnx.ModelProto, tuple[str, ...]]:
        """Return the model and notes."""
        for node in self.proto.graph.node:
            try:
                self._read(node)
            except UnsupportedNodeError as error:
                self.refusals.append(error)
        raise_all(self.refusals)
        outputs = [self._output(each) for each in self.proto.graph.output]
        model = self.made.finished(self.proto.graph.name or "network", self.inputs, outputs)
        return model, (*self.notes, *self.made.notes)

    def _read(self, proto: onnx.NodeProto) -> None:
        if proto.op_type == "Constant" and proto.attribute and proto.attribute[0].HasField("t"):
            self.constants[proto.output[0]] = array_of(proto.attribute[0].t)
            return
        for name in proto.input if proto.op_type in _ON_LEVELS else ():
            self._end(name)
        known = {"": None, **{name: self.values.get(name, self.constants.get(name)) for name in proto.input if name}}
        if any(name and known[name] is None for name in proto.input):
            return      # behind a node that was refused
        output = proto.output[0]
        node = PulpNode(proto, [known[name] for name in proto.input], self.made,
                        f"{output}:levels" if output in self.outputs else output)
        if not any(isinstance(each, Value) for each in node.given):
            raise node.refusal("it computes with constants alone", "fold constants, for instance with onnxsim")
        self.makers[output] = node
        if proto.op_type in _ON_FLOATS and any(map(_is_handed_out, node.given)):
            self.values[output] = self._in_float(node)
        elif proto.op_type in MOVES:
            self.values[output] = self._moved(node)
        elif proto.op_type in RULES:
            self.values[output] = RULES[proto.op_type](node)
        else:
            raise node.refusal("the operator is not compiled from an integer network of PULP's tools")

    def _end(self, name: str) -> None:
        """Make levels of sums that were cut to whole numbers, as averages are, since nothing bounds them."""
        given = self.values.get(name)
        if isinstance(given, PendingSums) and given.cut:
            self.values[name], saturated = whole_levels(self.makers[name], given)
            if saturated:
                self.notes.append(f"{name!r}, an average, may be above 255, and is 255 then, as in DORY's kernels")

    def _in_float(self, node: PulpNode) -> RealTensor:
        """Add a node that computes with sums which the network hands out, and return what it makes."""
        inputs = []
        for name, given in zip(node.proto.input, node.given, strict=True):
            if isinstance(given, PendingSums):
                real = RealTensor(f"{name}:real")
                put_sums(self.makers[name], given, real.name)
                self.values[name] = given = real
            if isinstance(given, np.ndarray):
                inputs.append(self.made.constant(f"{node.target}:{name}", given))
            elif isinstance(given, RealTensor):
                inputs.append(given.name)
            else:
                raise node.refusal("it computes with sums and levels", "cut the network before this node")
        output = node.proto.output[0]
        self.made.copied(node.proto, inputs, output)
        return RealTensor(output)

    def _moved(self, node: PulpNode) -> ByteLevels:
        """Add a node that moves or compares levels, and return what it makes."""
        inputs: list[str] = []
        kinds: dict[ByteLevels, None] = {}
        for name, given in zip(node.proto.input, node.given, strict=True):
            if isinstance(given, ByteLevels):
                inputs.append(given.name)
                kinds[given.named(node.target)] = None
            elif isinstance(given, np.ndarray):
                inputs.append(self.made.constant(f"{node.target}:{name}", given))
            elif given is None:
                inputs.append("")
            else:
                raise node.refusal("it moves sums before they are bounded to 8 bits", "requantise before it")
        if len(kinds) != 1:
            raise node.refusal("it joins signed and unsigned levels", "train the network with one of them")
        self.made.copied(node.proto, inputs, node.target)
        return next(iter(kinds))

    def _output(self, value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        """Add what hands an output out, and return its description."""
        name, kind = value.name, value.type.tensor_type.elem_type
        self._end(name)
        found = self.values.get(name)
        if found is None or kind not in _OUTPUTS:
            raise UnsupportedModelError(f"Output {name!r} must be computed, as float32, int8 or uint8, not be of "
                                        f"ONNX's type {kind}", "export the network again")
        if isinstance(found, PendingSums):
            put_sums(self.makers[name], found, name)
        elif isinstance(found, RealTensor):
            if found.name != name:
                self.made.node("Identity", [found.name], name)
            kind = TensorProto.FLOAT
        elif kind == TensorProto.FLOAT or found.zero:
            self.made.real(found, name)
            kind = TensorProto.FLOAT
        else:
            self.made.node("Identity", [found.name], name)
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(found.dtype))
        result = onnx.ValueInfoProto()
        result.CopyFrom(value)
        result.type.tensor_type.elem_type = kind
        return result


def _is_handed_out(value: Value | np.ndarray | None) -> bool:
    """Tell whether a value is floats, or plain sums of a product."""
    return isinstance(value, RealTensor) or (
        isinstance(value, PendingSums) and isinstance(value.source, ConstantProduct) and not value.shift
        and value.divisor == 1
        and set(value.multipliers) == {1})
