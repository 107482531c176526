"""The ONNX model that a .tflite file becomes: names, layouts, and the real numbers that levels stand for.

Tensors of four axes have their channels first in it, as ONNX has them; those that the model takes and gives keep the
file's layout, with a Transpose at the border; state, which nobody gives or takes, has none. All others are as in the
file. A tensor of levels keeps the file's name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.errors import UnsupportedModelError
from tilewright.compiler.tflite.mark import EngineName
from tilewright.compiler.tflite.stored.tensors import TfliteModel, TfliteOperator, TfliteTensor

__all__ = [
    "FIRST", "FLOAT", "INT32", "INT64", "LAST", "TITLES", "GraphBuilder", "LevelNumbers", "channels_first",
    "constant_of",
]

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""Axes with channels last in the order of channels first, and back."""

FLOAT, INT32, INT64 = int(TensorProto.FLOAT), int(TensorProto.INT32), int(TensorProto.INT64)
"""ONNX's numbers of these types."""

TITLES: dict[EngineName, str] = {
    "litert": "LiteRT's default session", "litert-reference": "LiteRT with its reference kernels",
    "tflm": "TensorFlow Lite Micro"}
"""Names of the engines in messages."""

_OPSET, _IR_VERSION = 17, 8
_LISTED = 6
_TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
          "int32": TensorProto.INT32, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}


@dataclass(frozen=True)
class LevelNumbers:
    """Scale, zero point and type of some levels."""

    scale: np.float32
    zero: int
    dtype: str = "int8"

    @classmethod
    def of(cls, tensor: TfliteTensor) -> "LevelNumbers":
        """Return those of a tensor that has one scale."""
        return cls(tensor.scale, tensor.zero, tensor.dtype)


class GraphBuilder:
    """Nodes and constants of the ONNX model, in order, and which of its tensors stands for which of the file's."""

    def __init__(self, model: TfliteModel, engine: EngineName = "litert") -> None:
        self.model, self.engine = model, engine
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, TensorProto] = {}
        self._names: dict[int, str] = {}
        self._taken = {tensor.name for tensor in model.tensors}
        self._kept = {*model.state, *model.state.values()}
        self._inputs = [self._input(model.tensors[index]) for index in model.inputs]
        self._near: list[str] = []
        self._apart: list[str] = []

    def tensor(self, index: int) -> TfliteTensor:
        """Return a tensor of the file."""
        return self.model.tensors[index]

    def fresh(self, hint: str) -> str:
        """Return a name that nothing has."""
        name, count = hint, 1
        while name in self._taken:
            name, count = f"{hint} {count}", count + 1
        self._taken.add(name)
        return name

    def node(self, kind: str, inputs: Sequence[str], *, like: str, output: str = "",
             **attributes: object) -> str:
        """Add a node and return its output, a fresh name that begins ``like`` another if none is given."""
        output = output or self.fresh(f"{like}:{kind}")
        self._nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def split(self, x: str, axis: int, sizes: Sequence[int], outputs: Sequence[str]) -> None:
        """Add a Split into ``outputs``."""
        sizes_name = self.constant(np.array(sizes, np.int64), f"{outputs[0]}:sizes")
        self._nodes.append(helper.make_node("Split", [x, sizes_name], list(outputs), name=outputs[0], axis=axis))

    def constant(self, values: np.ndarray, hint: str) -> str:
        """Add a constant and return its name."""
        name = self.fresh(hint)
        self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def stored(self, index: int) -> str:
        """Return the name of a tensor's content, channels first: levels, floats or other integers."""
        if index not in self._names:
            tensor = self.tensor(index)
            if tensor.data is None:
                raise UnsupportedModelError(f"Tensor {tensor.name!r} ({index}) must be computed before it is read")
            data = tensor.data.astype(np.float32) if tensor.dtype == "float16" else tensor.data
            self._names[index] = self.constant(channels_first(data), f"{tensor.name}:constant")
        return self._names[index]

    def real(self, index: int, levels: LevelNumbers | None = None) -> str:
        """Return the name of the real numbers of a tensor, channels first; by ``levels`` if not by its own."""
        tensor, name = self.tensor(index), self.stored(index)
        if not tensor.is_levels:
            return name
        return self.dequantised(name, levels or LevelNumbers.of(tensor))

    def dequantised(self, name: str, levels: LevelNumbers) -> str:
        """Return the real numbers that some levels stand for."""
        return self.node("DequantizeLinear", [name, *self._parameters(levels, name)], like=name)

    def as_real(self, name: str, tensor: TfliteTensor) -> str:
        """Return the real numbers of some of a tensor's content, however it was moved."""
        return self.dequantised(name, LevelNumbers.of(tensor)) if tensor.is_levels else name

    def weights(self, values: np.ndarray, tensor: TfliteTensor, axis: int) -> str:
        """Return the real numbers of constant weights, arranged as ``values``, with output channels on ``axis``."""
        name = self.constant(values, f"{tensor.name}:constant")
        if not tensor.is_levels:
            return name
        one = tensor.scales.size == 1
        scale = self.constant(tensor.scales.reshape(()) if one else tensor.scales, f"{tensor.name}:scale")
        zeros = tensor.zeros.astype(tensor.dtype)
        zero = self.constant(zeros.reshape(()) if one else zeros, f"{tensor.name}:zero")
        along: dict[str, Any] = {} if one else {"axis": axis}
        return self.node("DequantizeLinear", [name, scale, zero], like=tensor.name, **along)

    def _parameters(self, levels: LevelNumbers, hint: str) -> tuple[str, str]:
        return (self.constant(np.array(levels.scale, np.float32), f"{hint}:scale"),
                self.constant(np.array(levels.zero, levels.dtype), f"{hint}:zero"))

    def write(self, index: int, name: str) -> None:
        """Let ``name`` be the content of a tensor, which was given the name of :meth:`target`."""
        self._names[index] = name

    def target(self, index: int) -> str:
        """Return the name that the content of a tensor has in the model."""
        tensor = self.tensor(index)
        turned = self._is_turned(index) and index in self.model.outputs
        return f"{tensor.name} (channels first)" if turned or index in self._names else tensor.name

    def put(self, index: int, kind: str, inputs: Sequence[str], **attributes: object) -> None:
        """Add a node that writes a tensor's content."""
        self.write(index, self.node(kind, inputs, like="", output=self.target(index), **attributes))

    def quantised(self, name: str, levels: LevelNumbers, output: str = "", like: str = "") -> str:
        """Return the levels of real numbers."""
        return self.node("QuantizeLinear", [name, *self._parameters(levels, like or output)], like=like,
                         output=output)

    def put_real(self, index: int, name: str, levels: LevelNumbers | None = None) -> None:
        """Write a tensor of real numbers, quantised by its own parameters or ``levels`` if it is of levels."""
        tensor = self.tensor(index)
        if tensor.is_levels:
            self.write(index, self.quantised(name, levels or LevelNumbers.of(tensor), self.target(index), tensor.name))
        else:
            self.put(index, "Identity", [name])

    def _input(self, tensor: TfliteTensor) -> onnx.ValueInfoProto:
        if tensor.dtype not in _TYPES:
            raise UnsupportedModelError(f"Input {tensor.name!r} must be one of {', '.join(_TYPES)}, not {tensor.dtype}",
                                        "convert the model with int8 inputs")
        value = helper.make_tensor_value_info(tensor.name, _TYPES[tensor.dtype], self._border_shape(tensor))
        self._names[tensor.index] = tensor.name
        if self._is_turned(tensor.index):
            self._names[tensor.index] = self.node("Transpose", [tensor.name], like=tensor.name, perm=FIRST,
                                                  output=self.fresh(f"{tensor.name} (channels first)"))
        return value

    def _is_turned(self, index: int) -> bool:
        """Tell whether a tensor at the border has its channels last there, and first within."""
        return len(self.tensor(index).shape) == len(FIRST) and index not in self._kept

    def _border_shape(self, tensor: TfliteTensor) -> tuple[int, ...]:
        """Return the shape that a tensor has at the border."""
        kept = len(tensor.shape) == len(FIRST) and tensor.index in self._kept
        return tuple(tensor.shape[axis] for axis in FIRST) if kept else tensor.shape

    def near(self, operator: TfliteOperator, why: str) -> None:
        """Note that an operator's results may be one level off the engine's, and why."""
        self._near.append(f"{operator.label} ({operator.kind}): {why}")

    def apart(self, operator: TfliteOperator, why: str) -> None:
        """Note that an operator's results are not the engine's, which is wrong there, and why."""
        self._apart.append(f"{operator.label} ({operator.kind}): {why}")

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what may differ from the engine; none if nothing may."""
        title = TITLES[self.engine]
        return tuple(f"{title} {what} in {_listed(found)}" for what, found in (
            ("may be one level off", self._near), ("is not followed", self._apart)) if found)

    def finished(self, name: str) -> onnx.ModelProto:
        """Return the model, with the outputs of the file."""
        outputs = []
        for index in dict.fromkeys(self.model.outputs):
            tensor, stored = self.tensor(index), self.stored(index)
            if tensor.dtype not in _TYPES:
                raise UnsupportedModelError(f"Output {tensor.name!r} must be one of {', '.join(_TYPES)}, not "
                                            f"{tensor.dtype}", "convert the model with int8 outputs")
            public = tensor.name if index not in self.model.inputs else self.fresh(f"{tensor.name} (output)")
            if self._is_turned(index):
                self.node("Transpose", [stored], like="", output=public, perm=LAST)
            elif stored != public:
                self.node("Identity", [stored], like="", output=public)
            outputs.append(helper.make_tensor_value_info(public, _TYPES[tensor.dtype], self._border_shape(tensor)))
        graph = helper.make_graph(self._nodes, name, self._inputs, outputs, list(self._constants.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)

    @property
    def state(self) -> dict[str, str]:
        """Outputs that inputs are in the next call, by input."""
        return {self.tensor(before).name: self.tensor(after).name for before, after in self.model.state.items()}


def _listed(found: Sequence[str]) -> str:
    """Return the first few of ``found``, and how many more there are."""
    return "; ".join(found[:_LISTED]) + (f" and {len(found) - _LISTED} more" if len(found) > _LISTED else "")


def channels_first(values: np.ndarray) -> np.ndarray:
    """Return an array of four axes with its last second, and others as they are."""
    return values.transpose(FIRST) if values.ndim == 4 else values


def constant_of(builder: GraphBuilder, operator: TfliteOperator, position: int, what: str) -> np.ndarray:
    """Return the value of an input that must be a constant.

    Raises
    ------
    UnsupportedNodeError
        If it is computed, or left out.
    """
    data = builder.tensor(operator.inputs[position]).data if operator.has(position) else None
    if data is None:
        raise operator.refusal(f"its {what} is computed while the model runs", "convert the model with a constant")
    return data
