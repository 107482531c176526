"""The content of a .tflite file as values: tensors with their quantisation, operators with their options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError

__all__ = ["TfliteModel", "TfliteOperator", "TfliteTensor"]


@dataclass(frozen=True, kw_only=True)
class TfliteTensor:
    """A tensor of the file's first subgraph.

    Attributes
    ----------
    index : int
        Its place in the file, by which operators name it.
    name : str
        Unique among the tensors.
    shape : tuple of int
        With channels last, as the file has it.
    dtype : str
        NumPy's name of its type.
    scales, zeros : ndarray
        float32 and int64, of as many elements; empty where the tensor has no quantisation.
    axis : int
        The axis that has a scale for each index, if there are several.
    data : ndarray or None
        The value of a constant; None of what is computed or given.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: np.ndarray
    zeros: np.ndarray
    axis: int = 0
    data: np.ndarray | None = None

    @property
    def is_levels(self) -> bool:
        """Whether it holds bytes with a scale."""
        return self.dtype in ("int8", "uint8") and self.scales.size > 0

    @property
    def scale(self) -> np.float32:
        """The scale of all of it.

        Raises
        ------
        BadModelError
            If it has none, or more than one.
        """
        if self.scales.size != 1:
            raise BadModelError(f"Tensor {self.name!r} ({self.index}) must have one scale, not {self.scales.size}",
                                "convert the model again with full integer quantisation")
        return np.float32(self.scales[0])

    @property
    def zero(self) -> int:
        """The level that stands for 0; where there is no scale, an error as for that."""
        return int(self.zeros[0]) if self.scale else 0

    def real(self) -> np.ndarray:
        """Return the float32 numbers that a constant stands for."""
        assert self.data is not None
        values = self.data.astype(np.float32)
        if self.scales.size:
            values = (values - self._along(self.zeros).astype(np.float32)) * self._along(self.scales)
        return values.astype(np.float32)

    def levels(self, real: np.ndarray) -> np.ndarray:
        """Return the levels of this tensor's quantisation that float32 numbers have, halves to even."""
        ends = np.iinfo(self.dtype)
        with np.errstate(all="ignore"):
            steps = np.nan_to_num(np.rint(real / self._along(self.scales)))
        return np.clip(steps + self._along(self.zeros), ends.min, ends.max).astype(self.dtype)

    def _along(self, values: np.ndarray) -> np.ndarray:
        """Return scales or zero points as they are broadcast over the tensor."""
        return values.reshape([-1 if axis == self.axis and values.size > 1 else 1
                               for axis in range(max(len(self.shape), 1))])


@dataclass(frozen=True, kw_only=True)
class TfliteOperator:
    """An operator of the first subgraph.

    Attributes
    ----------
    index : int
        Its place in the file; -1 of one that the file does not have.
    kind : str
        TensorFlow Lite's name, such as ``CONV_2D``.
    inputs, outputs : tuple of int
        Tensors; -1 for an input that is left out.
    options : mapping of str to Any
        What the schema's table of options says, by the schema's names.
    label : str
        What messages call it: its place and the tensor that it writes.
    """

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def refusal(self, reason: str, way_out: str = "cut the model so that this operator runs outside, or replace it",
                ) -> UnsupportedNodeError:
        """Return the error that says why the operator is not compiled."""
        return UnsupportedNodeError(self.label, self.kind, reason, way_out)

    def has(self, position: int) -> bool:
        """Tell whether an input is there."""
        return position < len(self.inputs) and self.inputs[position] >= 0


@dataclass(frozen=True, kw_only=True)
class TfliteModel:
    """The first subgraph of a file: its tensors in the file's order, its operators in theirs.

    ``state`` has the outputs that inputs are in the next call, by input: what variables of the file keep.
    """

    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    state: Mapping[int, int] = field(default_factory=dict)
