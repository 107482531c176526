"""Compare every layer's tensor with ONNX Runtime's, element for element, and say where the first one parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.runtime.quantization import as_int8


@dataclass(frozen=True, slots=True)
class Difference:
    """The first layer that differs: where in its tensor, both values, and how many elements differ there."""

    layer: int
    name: str
    tensor: str
    index: tuple[int, ...]
    value: int
    expected: int
    count: int

    def __str__(self) -> str:
        return (f"Layer {self.layer} ({self.name}) is the first to differ from ONNX Runtime: {self.tensor} at "
                f"{self.index} (channel, row, column) is {self.value}, not {self.expected}; {self.count} of its "
                f"elements differ")


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many layers' tensors were compared, of how many, and the first difference."""

    compared: int
    layers: int
    difference: Difference | None

    @property
    def matches(self) -> bool | None:
        """Whether all that was compared is equal; None if nothing was."""
        return self.difference is None if self.compared else None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        if not self.compared:
            return "No tensor was compared with ONNX Runtime"
        return f"{self.compared} of {self.layers} layers compared with ONNX Runtime: every element is equal"


def compare(layers: Sequence[tuple[str, str]], tensors: Mapping[str, np.ndarray],
            reference: Mapping[str, np.ndarray]) -> Comparison:
    """Compare layers with ONNX Runtime, in order, up to the first that differs.

    Parameters
    ----------
    layers : sequence of (str, str)
        Name and output tensor of each.
    tensors : mapping of str to ndarray
        int8 of shape (channels, height, width) by name; layers without one are not compared.
    reference : mapping of str to ndarray
        int8 or uint8 of ONNX's shape, as `runtime.reference` returns them.
    """
    compared = 0
    for number, (name, tensor) in enumerate(layers):
        if tensor not in tensors or tensor not in reference:
            continue
        compared += 1
        value = tensors[tensor]
        expected = as_int8(reference[tensor]).reshape(value.shape)
        if (places := np.argwhere(value != expected)).size:
            first = tuple(map(int, places[0]))
            difference = Difference(number, name, tensor, first, int(value[first]), int(expected[first]), len(places))
            return Comparison(compared, len(layers), difference)
    return Comparison(compared, len(layers), None)
