"""A quantised model with other bits: weights of 4 or 2 in some layers, tensors of 16 before some; biases follow.

A weight's new levels are those of the float model it was quantised from, if that is given, or else of what its 8 bits
stand for. A tensor of 16 bits has the range that it has with 8, in steps of a 256th. So has what is moved or clamped
on the way to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, helper, numpy_helper

from tilewright.compiler.onnx.opset import raised
from tilewright.errors import InputError
from tilewright.runtime.precision.layer_bits import BitsText, LayerBits
from tilewright.runtime.precision.weight_rounding import rounded_weights
from tilewright.runtime.precision.weighted_layers import WeightedLayer, constant_arrays, weighted_layers

__all__ = ["can_widen", "layer_names", "with_bits"]

_SAME_LEVELS = {"MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Identity", "Relu", "Clip",
                "Slice", "Concat", "Pad"}
"""Operators whose result has no more levels than what they read: only finer levels before them make its own finer."""

_STEPS = 256
_WORDS = {np.dtype(np.int8): np.dtype(np.int16), np.dtype(np.uint8): np.dtype(np.uint16)}


def layer_names(graph: GraphProto) -> tuple[str, ...]:
    """Return the names of the layers that may have other bits, in order."""
    return tuple(layer.name for layer in weighted_layers(graph))


def can_widen(model: onnx.ModelProto, layer: str) -> bool:
    """Tell whether what a layer of a model reads can have 16 bits."""
    try:
        with_bits(model, LayerBits(activations=(BitsText(16, (layer,)),)))
    except InputError:
        return False
    return True


def with_bits(model: onnx.ModelProto, chosen: LayerBits, floats: Mapping[str, np.ndarray] | None = None,
              moments: Mapping[str, np.ndarray] | None = None) -> onnx.ModelProto:
    """Return a copy of a model of Q and DQ with the bits that are chosen for its layers.

    Parameters
    ----------
    model : ModelProto
        Of int8 and uint8, without integer operators.
    chosen : LayerBits
    floats : mapping of str to ndarray, optional
        Float weights by layer, shaped as its levels.
    moments : mapping of str to ndarray, optional
        By layer, as `input_moments.input_moments` returns them.

    Raises
    ------
    InputError
        If a choice means no layer, or a tensor that a layer reads cannot have 16 bits.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    changed = _Changed(made.graph, floats or {}, moments or {})
    names = [layer.name for layer in changed.layers]
    changed.narrow(chosen.of_weights(names))
    changed.widen(chosen.of_activations(names))
    changed.finish()
    return raised(made)


@dataclass(slots=True)
class _Changed:
    """A graph under change: its constants, layers, and who makes and reads what."""

    graph: GraphProto
    floats: Mapping[str, np.ndarray]
    moments: Mapping[str, np.ndarray]
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    layers: list[WeightedLayer] = field(default_factory=list)
    biases: dict[str, np.ndarray] = field(default_factory=dict)
    makers: dict[str, NodeProto] = field(default_factory=dict)
    readers: dict[str, list[NodeProto]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    widened: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.constants, self.layers = constant_arrays(self.graph), weighted_layers(self.graph)
        for node in self.graph.node:
            self.makers |= dict.fromkeys(node.output, node)
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.taken = self.constants.keys() | self.makers.keys()
        # As real numbers, before scales change.
        self.biases = {layer.name: _real(layer.bias, self.constants) for layer in self.layers
                       if layer.bias is not None}

    def narrow(self, bits: Mapping[str, int]) -> None:
        """Give weights fewer bits."""
        for layer in self.layers:
            if layer.name in bits:
                self._narrow(layer, bits[layer.name])

    def _narrow(self, layer: WeightedLayer, bits: int) -> None:
        real = _real(layer.weights, self.constants)
        given = self.floats.get(layer.name)
        source = given.astype(np.float64) if given is not None and given.shape == real.shape else real
        rows = np.moveaxis(source, layer.axis, 0)
        levels, scales = _rounded(rows.reshape(len(rows), -1), bits, self.moments.get(layer.name))
        scales = np.where(scales > 0, scales, np.max(self.constants[layer.weights.input[1]]))
        shaped = np.ascontiguousarray(np.moveaxis(levels.reshape(rows.shape), 0, layer.axis))
        parts = {"levels": shaped, "scale": scales.astype(np.float32), "zero": np.zeros(len(rows), np.int8)}
        self._replace(layer.node, 1, layer.weights, layer.name, parts, layer.axis)

    def widen(self, bits: Mapping[str, int]) -> None:
        """Give what layers read more bits."""
        for layer in self.layers:
            if layer.name in bits and not self._widen(layer.node.input[0]):
                raise InputError(f"What layer {layer.name!r} reads cannot have 16 bits: it must be quantised, with one "
                                 "scale, from floats of the model")

    def _widen(self, name: str) -> bool:
        """Give a dequantised tensor 16 bits, and what is moved or clamped on the way to it; tell whether it can be."""
        reader = self.makers.get(name)
        if reader is None or reader.op_type != "DequantizeLinear":
            return False
        maker = self.makers.get(reader.input[0])
        if reader.input[0] in self.widened:
            return True
        pair = [] if maker is None else [maker, *self.readers[reader.input[0]]]
        if maker is None or maker.op_type != "QuantizeLinear" or not all(self._is_byte(each) for each in pair) \
                or any(each.op_type != "DequantizeLinear" for each in pair[1:]):
            return False
        self.widened.add(reader.input[0])
        zero, scale = self.constants[maker.input[2]], self.constants[maker.input[1]]
        wide = zero.astype(np.int32) * _STEPS
        for what, value in (("scale", (scale / np.float32(_STEPS)).astype(np.float32)),
                            ("zero", wide.astype(_WORDS[zero.dtype]))):
            new = self._constant(f"{reader.input[0]}:{what}", value)
            for each in pair:
                each.input[1 if what == "scale" else 2] = new
        before = self.makers.get(maker.input[0])
        if before is not None and before.op_type in _SAME_LEVELS:
            for each in before.input:
                self._widen(each)
        return True

    def _is_byte(self, node: NodeProto) -> bool:
        """Tell whether a Q or DQ has one scale and one zero point of 8 bits, both constant."""
        if len(node.input) < 3 or any(name not in self.constants for name in node.input[1:]):
            return False
        scale, zero = (self.constants[name] for name in node.input[1:])
        return scale.size == 1 and zero.size == 1 and zero.dtype in _WORDS

    def finish(self) -> None:
        """Give biases the scales of their products, and drop what nobody reads."""
        for layer in self.layers:
            if layer.bias is not None:
                self._rescale_bias(layer, layer.bias)
        self._drop_unread()

    def _rescale_bias(self, layer: WeightedLayer, bias: NodeProto) -> None:
        source, weights = self.makers.get(layer.node.input[0]), self._maker_of_weights(layer)
        if source is None or source.op_type != "DequantizeLinear" or source.input[1] not in self.constants:
            return
        scale = self.constants[source.input[1]].ravel() * self.constants[weights.input[1]].ravel()
        before = self.constants[bias.input[1]].ravel()
        if np.allclose(scale, before, rtol=1e-5, atol=0):
            return
        real = self.biases[layer.name]
        levels = np.rint(real / scale.astype(np.float64))
        place = list(layer.adder.input).index(bias.output[0])
        if np.abs(levels).max(initial=0) >= 2**31:
            layer.adder.input[place] = self._constant(f"{layer.name}:bias", real.astype(np.float32))
            return
        zero = np.zeros(scale.size, np.int32)
        parts = {"levels": levels.astype(np.int32), "scale": scale.astype(np.float32), "zero": zero}
        if scale.size == 1:
            parts |= {"scale": parts["scale"].reshape(()), "zero": zero.reshape(())}
        self._replace(layer.adder, place, bias, f"{layer.name}:bias", parts, 0)

    def _maker_of_weights(self, layer: WeightedLayer) -> NodeProto:
        return self.makers[layer.node.input[1]]

    def _replace(self, reader: NodeProto, place: int, old: NodeProto, name: str, parts: Mapping[str, np.ndarray],
                 axis: int) -> None:
        """Let a node read a constant of new levels instead of an old one."""
        names = [self._constant(f"{name}:{what}", value) for what, value in parts.items()]
        out = self._fresh(f"{name}:real")
        along = {"axis": axis} if parts["scale"].ndim else {}
        node = helper.make_node("DequantizeLinear", names, [out], out, **along)
        self.makers[out] = node
        reader.input[place] = out
        index = next(index for index, each in enumerate(self.graph.node) if each.output[0] == old.output[0])
        self.graph.node.insert(index, node)

    def _constant(self, name: str, value: np.ndarray) -> str:
        found = self._fresh(name)
        self.constants[found] = value
        self.graph.initializer.append(numpy_helper.from_array(value, found))
        return found

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def _drop_unread(self) -> None:
        graph = self.graph
        read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
        nodes = [NodeProto.FromString(node.SerializeToString()) for node in graph.node
                 if node.op_type != "DequantizeLinear" or node.output[0] in read]
        del graph.node[:]
        graph.node.extend(nodes)
        used = {name for node in nodes for name in node.input} | {value.name for value in graph.output}
        kept = [tensor for tensor in graph.initializer if tensor.name in used]
        del graph.initializer[:]
        graph.initializer.extend(kept)


def _rounded(rows: np.ndarray, bits: int, moments: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return levels and scales of channels, which have the inputs of their group."""
    if moments is None:
        return rounded_weights(rows, bits)
    each = len(rows) // len(moments)
    found = [rounded_weights(rows[group * each:(group + 1) * each], bits, own) for group, own in enumerate(moments)]
    levels, scales = zip(*found, strict=True)
    return np.concatenate(levels), np.concatenate(scales)


def _real(node: NodeProto, constants: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the numbers that a DequantizeLinear of constants makes, in float64."""
    levels, scale, *zero = (constants[name] for name in node.input if name)
    axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
    shape = [1] * levels.ndim
    if scale.size > 1:
        shape[axis] = -1
    point = zero[0].astype(np.float64).reshape(shape if zero[0].size > 1 else ()) if zero else 0.0
    return np.asarray((levels.astype(np.float64) - point) * scale.astype(np.float64).reshape(
        shape if scale.size > 1 else ()))
