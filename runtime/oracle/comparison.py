"""Compare every layer's tensor with ONNX Runtime's, element by element, and report the first difference."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.runtime.oracle.conversion import as_int8

__all__ = ["FLOAT_TOLERANCE", "Comparison", "Difference", "FirstDifference", "compare", "float_differences"]

FLOAT_TOLERANCE = 1e-3
"""Of a float tensor's largest value: kernels add in another order than ONNX Runtime, layer after layer."""

_ABSOLUTE_TOLERANCE = 1e-7
"""Difference that always passes, as in ONNX's tests of backends (``onnx.backend.test.loader``).

ONNX Runtime's Sigmoid is a rational approximation: 1.1027e-6 for -13.699899, where 1 / (1 + exp(-x)) is 1.1226e-6.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDifference:
    """The first layer that differs: where in its tensor, and how many of the tensor's elements differ.

    Attributes
    ----------
    layer : int
    name, tensor : str
    index : tuple of int
        (channel, row, column), or of the tensor's own dimensions.
    count : int
    """

    layer: int
    name: str
    tensor: str
    index: tuple[int, ...]
    count: int

    def sentence(self, how: str, values: str) -> str:
        """Return the sentence about it: ``how`` it differs, and the element's ``values``."""
        axes = " (channel, row, column)" if len(self.index) == 3 else ""
        return (f"Layer {self.layer} ({self.name}) is the first that differs{how}: {self.tensor} at {self.index}{axes}"
                f"{values}; {self.count} of its elements differ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(FirstDifference):
    """The first difference from ONNX Runtime, with both values."""

    value: int | float
    expected: int | float

    def __str__(self) -> str:
        return self.sentence(" from ONNX Runtime", f" is {self.value}, not {self.expected}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Number of layers, number of those that were compared, and the first difference.

    Of those compared, ``floats`` were not integers: there ``deviation`` is the largest difference there was, relative
    to the largest value of its tensor. And ``loose`` come from what ONNX Runtime computes in float, and are not held to
    it: ``levels`` is the largest difference there was among their integers. ``untrusted`` says why ONNX Runtime's
    results were not asked for.
    """

    compared: int
    layers: int
    difference: Difference | None
    floats: int = 0
    deviation: float = 0.0
    loose: int = 0
    levels: int = 0
    untrusted: str = ""

    @property
    def matches(self) -> bool | None:
        """Whether all that was compared is equal, floats nearly; None if nothing was."""
        return self.difference is None if self.compared else None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        if self.untrusted:
            return self.untrusted
        if not self.compared:
            return "No tensor was compared with ONNX Runtime"
        held = self.compared - self.loose
        if not held:
            return (f"{self.loose} of {self.layers} layers compared with ONNX Runtime, which computes them in float: "
                    f"up to {self.levels} levels off (tilewright compare checks each layer by itself)")
        said = f"{held} of {self.layers} layers compared with ONNX Runtime: every element is equal"
        if self.floats:
            said += (f" except in {self.floats} float tensors, which differ by at most {self.deviation:.1g} of their "
                     f"range")
        if self.loose:
            said += (f"; ONNX Runtime computes {self.loose} more in float, and they are up to {self.levels} levels off "
                     "(tilewright compare checks each layer by itself)")
        return said


def compare(layers: Sequence[tuple[str, str]], tensors: Mapping[str, np.ndarray],
            reference: Mapping[str, np.ndarray], inexact: Collection[str] = (), untrusted: str = "") -> Comparison:
    """Compare layers with ONNX Runtime, in order, up to the first that differs.

    Parameters
    ----------
    layers : sequence of (str, str)
        Name and output tensor of each.
    tensors : mapping of str to ndarray
        By name: int8 of shape (channels, height, width), or of a type and dims of their own; layers without one are not
        compared.
    reference : mapping of str to ndarray
        Of ONNX's type and shape, as `runtime.oracle.onnx_runtime` returns them.
    inexact : collection of str
        Tensors that need not be equal, as ONNX Runtime computes in float what they come from.
    untrusted : str
        Why there is no reference, if there is none.
    """
    compared = floats = loose = levels = 0
    deviation = 0.0
    for number, (name, tensor) in enumerate(layers):
        if tensor not in tensors or tensor not in reference:
            continue
        compared += 1
        value = tensors[tensor]
        expected = reference[tensor].reshape(value.shape)
        if value.dtype == np.int8:
            expected = as_int8(expected)
        if tensor in inexact:
            loose += 1
            if value.dtype != np.float32:
                levels = max(levels, int(np.abs(value.astype(np.int64) - expected.astype(np.int64)).max(initial=0)))
            continue
        if value.dtype == np.float32:
            floats += 1
            differs, largest = float_differences(value, expected)
            deviation = max(deviation, largest)
        else:
            differs = value != expected
        if (places := np.argwhere(differs)).size:
            first = tuple(map(int, places[0]))
            difference = Difference(layer=number, name=name, tensor=tensor, index=first, count=len(places),
                                    value=value[first].item(), expected=expected[first].item())
            return Comparison(compared, len(layers), difference, floats, deviation, loose, levels)
    return Comparison(compared, len(layers), None, floats, deviation, loose, levels, untrusted)


def float_differences(value: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, float]:
    """Return where floats differ by more than ``FLOAT_TOLERANCE`` of their range, and by how much of it at most.

    The range of tensors of small numbers is taken as that of which the tolerance is 1e-7.
    """
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
    finite = np.isfinite(value) & np.isfinite(expected)
    scale = max(float(np.abs(expected[finite]).max(initial=0)), _ABSOLUTE_TOLERANCE / FLOAT_TOLERANCE)
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.where(finite, np.abs(value.astype(np.float64) - expected) / scale, np.inf))
    return off > FLOAT_TOLERANCE, float(off.max(initial=0))
