"""Changes that ONNX Runtime's session makes to a quantised model by itself, and a model in which it makes none.

A session quantises constants that the file keeps in float, whatever the user meant: the float weights of a layer that
was left out of quantisation, per tensor to int8, and float biases, to int32 at input scale · weight scale, which
overflow where a channel is dead; and it takes the integers of an int32 bias without its scale
(``weight_bias_quantization.cc``, ``qdq_selectors.cc``). The file's meaning is ours: the reference gets a model in which
float weights are computed at run time, so that they are no constants, and dead channels have weights of 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, numpy_helper

from tilewright.compiler.passes.recognise.qdq.idle_channels import LevelRange, without_idle_channels

__all__ = ["Change", "as_the_file_says"]

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_BETWEEN = ("Relu", "Clip")
_INT32 = 2.0**31
_RELATIVE, _ABSOLUTE = 1e-2, 1e-6
"""Differences of scales up to which a convolution's bias counts as integers (``CheckConvBiasScale``)."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a session makes to a node by itself, such as ``quantises the float weights``.

    ``mended`` tells whether the reference's model prevents it.
    """

    node: str
    operator: str
    what: str
    mended: bool = True


def as_the_file_says(model: onnx.ModelProto) -> tuple[Change, ...]:
    """Change a model in place so that a session does not; return what it would do otherwise."""
    return tuple(_Mending(model.graph).changes())


class _Mending:
    """A graph, its constants by name, and which node writes a tensor."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        for node in [each for each in graph.node if each.op_type == "Constant" and not each.domain]:
            value = next((each.t for each in node.attribute if each.name == "value"), None)
            if value is not None:
                graph.initializer.add().CopyFrom(value)
                graph.initializer[-1].name = node.output[0]
                graph.node.remove(node)
        given = {value.name for value in graph.input}
        self._constants = {each.name: each for each in graph.initializer if each.name not in given}
        self._makers = {name: node for node in graph.node for name in node.output}

    def changes(self) -> Iterator[Change]:
        """Prevent and yield each change."""
        for node in [each for each in self._graph.node if each.op_type in _PRODUCTS and not each.domain]:
            x, weights, name = self._dequantised(node.input[0]), self._dequantised(node.input[1]), \
                node.name or node.output[0]
            if x is not None and self._is_float(node.input[1]):
                self._open(node, 1)
                yield Change(name, node.op_type, "quantises the float weights")
            elif x is not None and weights is not None and (place := self._bias_place(node)) is not None:
                yield from (Change(name, node.op_type, what, mended)
                            for what, mended in self._bias(node, (x, weights), place))

    def _bias_place(self, node: NodeProto) -> tuple[NodeProto, int] | None:
        """Return where a product's bias is an input: of itself, or of the Add that a session fuses with a MatMul."""
        if any(each.name in ("alpha", "beta") and each.f != 1 for each in node.attribute):
            return None     # a session computes it in float
        if node.op_type != "MatMul":
            return (node, 2) if len(node.input) > 2 and node.input[2] else None
        readers = self._readers(node)
        if len(readers) != 1 or readers[0].op_type != "Add":
            return None
        return next(((readers[0], index) for index, name in enumerate(readers[0].input) if self._is_float(name)), None)

    def _bias(self, node: NodeProto, operands: tuple[NodeProto, NodeProto],
              place: tuple[NodeProto, int]) -> Iterator[tuple[str, bool]]:
        """Yield what happens to the bias of a product of two quantised operands, the input of a node."""
        scales, bias = [self._array(each.input[1]) for each in operands], place[0].input[place[1]]
        if scales[0] is None or scales[1] is None or scales[0].size != 1:
            return
        steps = scales[0].astype(np.float64).ravel() * scales[1].astype(np.float64).ravel()
        if self._is_float(bias):
            values = self._array(bias)
            if values is not None and values.ndim == 1 and steps.size in (1, values.size) and (
                    np.abs(values.astype(np.float64)) >= _INT32 * steps).any():
                if not self._without_idle_channels(node, operands, place[0], values):
                    self._open(*place)
                yield "quantises the float bias beyond int32", True
            return
        source = self._dequantised(bias)
        own = None if source is None else self._array(source.input[1])
        if own is not None and node.op_type != "ConvTranspose" and len({1, own.size, steps.size}) <= 2 and not (
                np.allclose(own.ravel(), steps, rtol=_RELATIVE, atol=0 if node.op_type == "Gemm" else _ABSOLUTE)):
            yield "ignores the own scale of the int32 bias", False

    def _without_idle_channels(self, node: NodeProto, operands: tuple[NodeProto, NodeProto], last: NodeProto,
                               bias: np.ndarray) -> bool:
        """Write weights of 0 for channels that no input moves; tell whether the bias fits int32 then."""
        x, weights = operands
        quantise = self._quantise_behind(last)
        levels, scales = self._array(weights.input[0]), self._array(weights.input[1])
        zero = self._array(weights.input[2]) if len(weights.input) > 2 else np.zeros((), np.int8)
        if quantise is None or levels is None or scales is None or zero is None or levels.dtype != np.int8 \
                or zero.any() or node.op_type == "ConvTranspose" or (node.op_type != "Conv" and levels.ndim != 2):
            return False
        ends = self._levels(x), self._levels(quantise)
        if ends[0] is None or ends[1] is None:
            return False
        by_columns = node.op_type != "Conv" and not any(each.name == "transB" and each.i for each in node.attribute)
        found = without_idle_channels(levels.T if by_columns else levels, scales, bias, ends[0], ends[1])
        if found is None:
            return False
        arrays = found[0].T if by_columns else found[0], found[1], np.zeros(found[1].size, np.int8)
        names = [f"{node.output[0]}:{what}" for what in ("weights", "scales", "zeros")]
        for name, array in zip(names, arrays, strict=True):
            self._graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        made = onnx.helper.make_node("DequantizeLinear", names, [f"{node.output[0]}:live"], axis=int(by_columns))
        self._graph.node.insert(list(self._graph.node).index(node), made)
        node.input[1] = made.output[0]
        return True

    def _readers(self, node: NodeProto) -> list[NodeProto]:
        return [each for each in self._graph.node if node.output[0] in each.input]

    def _quantise_behind(self, node: NodeProto) -> NodeProto | None:
        """Return the QuantizeLinear of a node's result, a ReLU or Clip between them."""
        while node.op_type != "QuantizeLinear":
            readers = self._readers(node)
            if len(readers) != 1 or readers[0].op_type not in ("QuantizeLinear", *_BETWEEN):
                return None
            node = readers[0]
        return node

    def _levels(self, node: NodeProto) -> LevelRange | None:
        """Return the levels of a QuantizeLinear or DequantizeLinear of one scale and a stated zero point."""
        scale, zero = (self._array(name) for name in (*node.input, "")[1:3])
        if scale is None or zero is None or scale.size != 1 or zero.dtype.kind not in "iu":
            return None
        ends = np.iinfo(zero.dtype)
        return LevelRange(float(scale.ravel()[0]), int(zero.ravel()[0]), int(ends.min), int(ends.max))

    def _dequantised(self, name: str) -> NodeProto | None:
        maker = self._makers.get(name)
        return maker if maker is not None and maker.op_type == "DequantizeLinear" else None

    def _is_float(self, name: str) -> bool:
        return name in self._constants and self._constants[name].data_type == onnx.TensorProto.FLOAT

    def _array(self, name: str) -> np.ndarray | None:
        constant = self._constants.get(name)
        return None if constant is None else numpy_helper.to_array(constant)

    def _open(self, node: NodeProto, index: int) -> None:
        """Compute an input of a node at run time, so that nothing is made of its value beforehand.

        It is the negative of numbers that could be given then, because a session quantises such constants too.
        """
        name = f"{node.output[0]}:negative {index}"
        values = self._array(node.input[index])
        assert values is not None
        self._graph.initializer.append(numpy_helper.from_array(-values, name))
        self._graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, values.shape))
        made = onnx.helper.make_node("Neg", [name], [f"{node.output[0]}:input {index}"])
        self._graph.node.insert(list(self._graph.node).index(node), made)
        node.input[index] = made.output[0]
