"""Compare every layer's tensor with ONNX Runtime's, element by element: a verdict of each, and the first difference."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.runtime.execution.verdict import Judged, TensorVerdict, not_compared
from tilewright.runtime.oracle.conversion import as_int8

__all__ = [
    "FLOAT_TOLERANCE", "IN_FLOAT", "NOT_SHOWN", "NOT_STORED", "Comparison", "Difference", "FirstDifference", "Output",
    "compare", "compare_outputs", "float_differences", "judge",
]

FLOAT_TOLERANCE = 1e-3
"""Of a float tensor's largest value: kernels add in another order than ONNX Runtime, layer after layer."""

_ABSOLUTE_TOLERANCE = 1e-7
"""Difference that always passes, as in ONNX's tests of backends (``onnx.backend.test.loader``).

ONNX Runtime's Sigmoid is a rational approximation: 1.1027e-6 for -13.699899, where 1 / (1 + exp(-x)) is 1.1226e-6.
"""

IN_FLOAT = "ONNX Runtime computes it, or what it comes from, in float"
_NEAR = "floats are added in another order"
NOT_STORED = "it was not stored"
NOT_SHOWN = "ONNX Runtime does not show it"


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
    """The verdict of every layer and of every output of the model, and the first difference that must not be.

    ``untrusted`` says why ONNX Runtime's results were not asked for.
    """

    of_layers: tuple[Judged, ...]
    difference: Difference | None = None
    untrusted: str = ""
    of_outputs: tuple[Judged, ...] = ()

    @classmethod
    def of_nothing(cls, layers: Sequence[tuple[str, str]], why: str) -> "Comparison":
        """Return the comparison of a run in which nothing was compared; layers as in :func:`compare`."""
        return cls(tuple(Judged(name, tensor, not_compared(why)) for name, tensor in layers))

    @property
    def verdicts(self) -> list[TensorVerdict]:
        """Those of layers, then of outputs."""
        return [each.verdict for each in (*self.of_layers, *self.of_outputs)]

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.of_layers)

    @property
    def compared(self) -> int:
        """Number of layers that were compared."""
        return sum(each.verdict.kind != "not compared" for each in self.of_layers)

    @property
    def floats(self) -> int:
        """Number of float tensors among them that are held to ONNX Runtime's."""
        return len(self._floats)

    @property
    def deviation(self) -> float:
        """The largest difference of such a float, relative to the largest value of its tensor."""
        return max((each.share or 0.0 for each in self._floats), default=0.0)

    @property
    def loose(self) -> int:
        """Number of layers that are off, and not held to ONNX Runtime, as it computes in float what they come from."""
        return len(self._loose)

    @property
    def levels(self) -> int:
        """The largest difference among their integers."""
        return max((each.levels or 0 for each in self._loose), default=0)

    @property
    def _floats(self) -> list[TensorVerdict]:
        return [each.verdict for each in self.of_layers
                if each.verdict.share is not None and each.verdict.why != IN_FLOAT]

    @property
    def _loose(self) -> list[TensorVerdict]:
        return [each.verdict for each in self.of_layers
                if each.verdict.kind == "declared" and each.verdict.why == IN_FLOAT]

    @property
    def matches(self) -> bool | None:
        """Whether all that was compared is equal, or off as declared; None if nothing was."""
        if self.difference is not None:
            return False
        return True if any(each.kind != "not compared" for each in self.verdicts) else None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        if self.untrusted:
            return self.untrusted
        if self.matches is None:
            return "No tensor was compared with ONNX Runtime"
        return self._layers_text() + self._outputs_text()

    def _layers_text(self) -> str:
        held = self.compared - self.loose
        if not self.compared:
            return f"None of {self.layers} layers was compared with ONNX Runtime"
        if not held:
            return (f"{self.loose} of {self.layers} layers compared with ONNX Runtime, which computes them in float: "
                    + self._loose_text("every element is equal"))
        said = f"{held} of {self.layers} layers compared with ONNX Runtime: every element is equal"
        if self.deviation:
            said += (f" except in {self.floats} float tensors, which differ by at most {self.deviation:.1g} of their "
                     f"range")
        if self.loose:
            said += f"; ONNX Runtime computes {self.loose} more in float, and they are "
            said += self._loose_text("equal, too")
        return said

    def _loose_text(self, equal: str) -> str:
        """Return how far layers are off that ONNX Runtime computes in float; ``equal`` if they are not."""
        if not self.levels:
            return equal
        levels = "1 level" if self.levels == 1 else f"{self.levels} levels"
        return f"up to {levels} off (tilewright compare checks each layer by itself)"

    def _outputs_text(self) -> str:
        """Return what is to be said of outputs that are not all equal."""
        return "".join(f"; output {each.name} is {each.verdict}" for each in self.of_outputs
                       if each.verdict.kind != "equal")


def compare(layers: Sequence[tuple[str, str]], tensors: Mapping[str, np.ndarray],
            reference: Mapping[str, np.ndarray], inexact: Collection[str] = (), untrusted: str = "") -> Comparison:
    """Compare layers with ONNX Runtime.

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
    difference = None
    found: list[Judged] = []
    for number, (name, tensor) in enumerate(layers):
        if tensor not in tensors or tensor not in reference:
            why = _why_none(untrusted) or (NOT_STORED if tensor not in tensors else NOT_SHOWN)
            found.append(Judged(name, tensor, not_compared(why)))
            continue
        value = tensors[tensor]
        expected = reference[tensor].reshape(value.shape)
        if value.dtype == np.int8:
            expected = as_int8(expected)
        verdict, wrong = judge(value, expected, loose=tensor in inexact)
        found.append(Judged(name, tensor, verdict))
        if verdict.kind == "differs" and difference is None:
            difference = _difference(number, name, tensor, value, expected, wrong)
    return Comparison(tuple(found), difference, untrusted)


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the model: its value, and how it is compared.

    ``tensor`` is the network's tensor behind it; ``scale`` that of its levels, None of an output without;
    ``loose`` tells whether it need not be equal.
    """

    name: str
    tensor: str
    value: np.ndarray
    scale: float | None = None
    loose: bool = False


def compare_outputs(outputs: Sequence[Output], expected: Mapping[str, np.ndarray], of_layers: Comparison) -> Comparison:
    """Return the comparison of layers with that of the model's outputs, which ONNX Runtime always shows.

    A layer whose tensor it does not show is judged by the output that is made of it, if there is one.
    """
    found, difference = [], of_layers.difference
    for output in outputs:
        if output.name not in expected:
            found.append(Judged(output.name, output.tensor, not_compared(_why_none(of_layers.untrusted) or NOT_SHOWN)))
            continue
        theirs = expected[output.name].reshape(output.value.shape)
        verdict, wrong = judge(output.value, theirs, loose=output.loose, scale=output.scale)
        found.append(Judged(output.name, output.tensor, verdict))
        if verdict.kind == "differs" and difference is None:
            makers = [number for number, each in enumerate(of_layers.of_layers) if each.tensor == output.tensor]
            difference = _difference(makers[-1] if makers else of_layers.layers, f"output {output.name}", output.name,
                                     output.value, theirs, wrong)
    verdicts = {each.tensor: each.verdict for each in found}
    layers = tuple(Judged(each.name, each.tensor, verdicts.get(each.tensor, each.verdict))
                   if each.verdict.kind == "not compared" else each for each in of_layers.of_layers)
    return replace(of_layers, of_layers=layers, of_outputs=tuple(found), difference=difference)


def judge(value: np.ndarray, expected: np.ndarray, *, loose: bool = False,
          scale: float | None = None) -> tuple[TensorVerdict, np.ndarray]:
    """Return the verdict of a tensor, and where it is off.

    Parameters
    ----------
    value, expected : ndarray
        Of one type and shape.
    loose : bool
        Whether it may be off by any number of levels, as it follows from what ONNX Runtime computes in float.
    scale : float, optional
        Of the levels that floats stand for: then their difference is told in levels.
    """
    off, size = value != expected, value.size
    if np.issubdtype(value.dtype, np.floating):
        off = off & ~(np.isnan(value) & np.isnan(expected))
    if not off.any():
        levels = 0 if scale or not np.issubdtype(value.dtype, np.floating) else None
        return TensorVerdict(kind="equal", elements=size, levels=levels, share=0.0 if levels is None else None), off
    count = int(np.count_nonzero(off))
    if not np.issubdtype(value.dtype, np.floating):
        far = np.abs(value[off].astype(np.int64) - expected[off].astype(np.int64))
        found = TensorVerdict(kind="differs", elements=size, off=count, levels=int(far.max()))
    elif scale:
        steps = np.rint(np.abs(value.astype(np.float64) - expected) / scale)
        found = TensorVerdict(kind="differs", elements=size, off=count, levels=int(steps.max()))
        if not found.levels:
            return replace(found, kind="declared", why=_NEAR), off
    else:
        wrong, share = float_differences(value, expected)
        found = TensorVerdict(kind="differs", elements=size, off=count, share=share)
        if not wrong.any() and not loose:
            return replace(found, kind="declared", why=_NEAR), off
        off = off if loose else wrong
    return (replace(found, kind="declared", why=IN_FLOAT) if loose else found), off


def _difference(layer: int, name: str, tensor: str, value: np.ndarray, expected: np.ndarray,
                wrong: np.ndarray) -> Difference:
    places = np.argwhere(wrong)
    first = tuple(map(int, places[0]))
    return Difference(layer=layer, name=name, tensor=tensor, index=first, count=len(places),
                      value=value[first].item(), expected=expected[first].item())


def _why_none(untrusted: str) -> str:
    return untrusted.removeprefix("not compared: ")


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
