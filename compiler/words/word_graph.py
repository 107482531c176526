"""Who makes and who reads each tensor of a network, as recognition of words asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Layer, Network, TensorInfo
from tilewright.compiler.words.word_tensors import zero_of

__all__ = ["VIEWS", "WordGraph"]

VIEWS = ("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity")
"""Operators that leave the elements of a tensor in their order."""


@dataclass(slots=True)
class WordGraph:
    """Layers of a network by number, and their tensors."""

    network: Network
    makers: dict[str, int] = field(default_factory=dict)
    readers: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, layer in enumerate(self.layers):
            for name in layer.writes:
                self.makers[name] = index
            for name in layer.reads:
                self.readers.setdefault(name, []).append(index)

    @property
    def layers(self) -> tuple[AnyLayer, ...]:
        """The layers in order."""
        return self.network.layers

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """The tensors by name."""
        return self.network.tensors

    @property
    def constants(self) -> Mapping[str, np.ndarray]:
        """The constants by name."""
        return self.network.constants

    def core(self, index: int, *ops: str) -> CoreLayer | None:
        """Return layer ``index`` if it is one of the host core with one of these operators."""
        layer = self.layers[index]
        return layer if isinstance(layer, CoreLayer) and layer.op in ops else None

    def made_by(self, name: str) -> int | None:
        """Return the number of the layer that makes a tensor."""
        return self.makers.get(name)

    def sums_of(self, name: str) -> tuple[int, Layer] | None:
        """Return the number of the layer, and the layer, that leaves its whole sums as ``name``, for one reader."""
        if len(self.readers.get(name, ())) != 1:
            return None
        for index, layer in enumerate(self.layers):
            place = self.tensors[layer.output].place
            if isinstance(layer, Layer) and layer.whole and place is not None and place.parent == name:
                return index, layer
        return None

    def alone(self, index: int) -> bool:
        """Tell whether a layer's result has one reader, and is no output of the model."""
        name = self.layers[index].writes[0]
        return len(self.readers.get(name, ())) == 1 and all(info.name != name for info in self.network.outputs)

    def quantisation(self, layer: CoreLayer) -> tuple[np.float32, int] | None:
        """Return scale and zero point of a QuantizeLinear or DequantizeLinear, the latter as the datapath has it.

        None if they are computed, or of channels.
        """
        name = layer.output if layer.op == "QuantizeLinear" else layer.inputs[0]
        scale = self.constants.get(layer.inputs[1])
        given = layer.inputs[2] if len(layer.inputs) > 2 else ""
        zero = self.constants.get(given) if given else np.zeros(1, np.int8)
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or name not in self.tensors:
            return None
        return np.float32(scale.reshape(())), zero_of(int(zero.reshape(())), self.tensors[name].dtype)

    def clamp_bounds(self, layer: CoreLayer) -> tuple[float | None, float | None]:
        """Return the bounds of a Relu or Clip, None where there is none."""
        if layer.op == "Relu":
            return 0.0, None
        found: list[float | None] = []
        for number, name in ((1, "min"), (2, "max")):
            given = layer.inputs[number] if len(layer.inputs) > number else ""
            value = self.constants[given].reshape(()) if given in self.constants else layer.attrs.get(name)
            found.append(None if value is None else float(value))
        return found[0], found[1]
