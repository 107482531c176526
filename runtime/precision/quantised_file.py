"""A model quantised with chosen bits, as a file that ONNX Runtime and every command read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.compiler.normal.rules.normal_form import without_integer_operators
from tilewright.compiler.onnx.reader import read_model
from tilewright.errors import InputError
from tilewright.models import NAMES
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.inputs import ONNX_TYPES, NodeArg
from tilewright.runtime.precision.chosen_bits import can_widen, layer_names, with_bits
from tilewright.runtime.precision.input_moments import input_moments
from tilewright.runtime.precision.layer_bits import LayerBits
from tilewright.runtime.precision.weighted_layers import constant_arrays, weighted_layers
from tilewright.runtime.precision.written_bits import with_narrow_weights
from tilewright.runtime.quantise.float_regions import Precision, precision_of
from tilewright.runtime.quantise.samples import read_calibration

__all__ = ["MOST_SAMPLES", "PRODUCTS", "BitsModel", "LayerRow", "bits_model", "input_arguments",
           "is_quantised"]

MOST_SAMPLES = 32
"""Samples, at most, on which it is measured which rounding errors cost accuracy."""

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True, slots=True)
class LayerRow:
    """A layer with weights: their number and bits, and the bits of what it reads."""

    name: str
    weights: int
    weight_bits: int
    activation_bits: int


@dataclass(frozen=True, slots=True)
class BitsModel:
    """A quantised model whose layers can be given bits, as often as wanted.

    Attributes
    ----------
    model : ModelProto
        Of Q and DQ, with 8 bits.
    floats : mapping of str to ndarray
        Weights of the float model by layer, if it was quantised here.
    moments : mapping of str to ndarray
        As `input_moments.input_moments` returns them; empty without samples.
    samples : int
        How many they are of.
    """

    model: onnx.ModelProto
    floats: Mapping[str, np.ndarray]
    moments: Mapping[str, np.ndarray]
    samples: int

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in order."""
        return layer_names(self.model.graph)

    @property
    def wide(self) -> tuple[bool, ...]:
        """Whether each layer can read 16 bits."""
        return tuple(can_widen(self.model, name) for name in self.layers)

    def with_bits(self, chosen: LayerBits) -> onnx.ModelProto:
        """Return a copy with these bits, weights in levels of int8; raises as `chosen_bits.with_bits` does."""
        return with_bits(self.model, chosen, self.floats, self.moments)

    def written(self, chosen: LayerBits) -> onnx.ModelProto:
        """Return the same as it is written: weights of 4 and 2 bits as int4."""
        return with_narrow_weights(self.with_bits(chosen), chosen.of_weights(self.layers))

    def rows(self, chosen: LayerBits) -> list[LayerRow]:
        """Return the layers with the bits that are chosen for them, in order; raises as `with_bits` does."""
        layers, constants = weighted_layers(self.model.graph), constant_arrays(self.model.graph)
        names = [layer.name for layer in layers]
        weights, activations = chosen.of_weights(names), chosen.of_activations(names)
        return [LayerRow(layer.name, constants[layer.weights.input[0]].size, weights.get(layer.name, 8),
                         activations.get(layer.name, 8)) for layer in layers]


def is_quantised(name: str) -> bool:
    """Tell whether MODEL, as it is typed, is quantised already: a built-in network, or such a file."""
    return name in NAMES or (Path(name).is_file() and precision_of(read_model(Path(name))) is Precision.QUANTISED)


def bits_model(source: ModelSource, calibrate: Path | None) -> BitsModel:
    """Return a model whose layers can be given bits; rounding goes by the samples that it was quantised with, or these.

    Raises
    ------
    CompileError
        If the file is no valid model.
    InputError
        If it has no layer with quantised weights, or the samples are not the model's.
    """
    model = without_integer_operators(read_model(source.path))
    layers = weighted_layers(model.graph)
    if not layers:
        raise InputError(f"Model {source.own_file.name!r} must have a layer whose weights are quantised "
                         f"({', '.join(PRODUCTS)}), and has none")
    floats: dict[str, np.ndarray] = {}
    feeds: Iterable[Mapping[str, np.ndarray]] = ()
    if source.quantised is not None:
        floats = _float_weights(read_model(source.quantised.float_model))
        feeds = source.quantised.feeds(MOST_SAMPLES)
    elif calibrate is not None:
        feeds = islice(read_calibration(calibrate, input_arguments(model)).feeds(), MOST_SAMPLES)
    taken = list(feeds)
    return BitsModel(model, floats, input_moments(model, taken) if taken else {}, len(taken))


def _float_weights(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return the constants that products of a float model read, by the name of the product."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    return {node.name: numpy_helper.to_array(constants[node.input[1]]) for node in model.graph.node
            if node.op_type in PRODUCTS and len(node.input) > 1 and node.input[1] in constants}


def input_arguments(model: onnx.ModelProto) -> list[NodeArg]:
    """Return the inputs of a model that are no constants; an open batch is 1."""
    constants = {tensor.name for tensor in model.graph.initializer}
    found = []
    for value in model.graph.input:
        if value.name not in constants:
            kind = value.type.tensor_type
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
            shape = tuple(axis.dim_value or 1 for axis in kind.shape.dim)
            found.append(NodeArg(value.name, shape, ONNX_TYPES[dtype.name]))
    return found
