"""Arithmetic on an input of the model before it is quantised, element by element: ``(x - mean) / deviation``.

Quantisation of a float input is the host's, and so is what comes before it. Each step is one operation of float32, as
ONNX Runtime computes it, so the integers are the same to the bit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["OPERATIONS", "PreparationStep", "prepared", "unprepared"]

OPERATIONS: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum}
"""Functions of an element and a constant that a step may compute."""


@dataclass(frozen=True, slots=True)
class PreparationStep:
    """``operation`` of every element and a constant of ``shape``, which the input's broadcasts.

    Attributes
    ----------
    operation : str
        One of ``OPERATIONS``.
    values : tuple of float
        float32 values of the constant, row by row.
    shape : tuple of int
    swapped : bool
        The constant is the first operand.
    """

    operation: str
    values: tuple[float, ...]
    shape: tuple[int, ...] = ()
    swapped: bool = False

    def applied(self, array: np.ndarray) -> np.ndarray:
        """Return the float32 array after the step; the shape stays the same."""
        constant = np.array(self.values, np.float32).reshape(self.shape)
        first, second = (constant, array) if self.swapped else (array, constant)
        with np.errstate(all="ignore"):
            return OPERATIONS[self.operation](first, second)


    def undone(self, array: np.ndarray) -> np.ndarray:
        """Return an approximate input for which ``applied`` gives ``array``, if there is one."""
        inverse = {"add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply"}
        if self.operation not in inverse:
            return array
        if self.swapped and self.operation in ("subtract", "divide"):
            return self.applied(array)
        undoing = PreparationStep(inverse[self.operation], self.values, self.shape)
        return np.nan_to_num(undoing.applied(array), posinf=0.0, neginf=0.0)


def prepared(steps: tuple[PreparationStep, ...], array: np.ndarray) -> np.ndarray:
    """Return a float32 input of the model after all ``steps``."""
    for step in steps:
        array = step.applied(array)
    return array


def unprepared(steps: tuple[PreparationStep, ...], array: np.ndarray) -> np.ndarray:
    """Return an input of the model of which ``steps`` make about ``array``."""
    for step in reversed(steps):
        array = step.undone(array)
    return array
