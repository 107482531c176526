"""Random resizes: every mode, coordinates of every kind, whole, broken and any other ratios, by scales or by sizes."""

import math

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder

__all__ = ["random_resize"]

_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric")
_FACTORS = ((2, 2), (3, 1), (1, 2), (2, 3), (0.5, 0.5), (4, 4), (1.5, 2), (0.75, 1.25), (8, 2))
_SMALLEST_CUBIC = 4


def random_resize(choices: Choices, model: ModelBuilder, form: str, shape: tuple[int, ...], most: int,
                  ) -> tuple[tuple[int, ...], tuple[str, ...], dict[str, object]] | None:
    """Return shape, inputs behind the first, and attributes of a Resize of ``shape``; None if it is too large.

    ``most`` bounds the elements of the result.
    """
    mode = choices.pick(("nearest", "linear", "linear", "cubic"))
    if mode == "cubic" and (form == "qoperator" or min(shape[2:]) < _SMALLEST_CUBIC):
        # ONNX Runtime has no cubic kernel on integers.
        mode = "linear"
    factors = choices.pick(_FACTORS)
    by_sizes = choices.chance(30)
    if by_sizes:
        size = [choices.between(1, 2 * dim + 3) for dim in shape[2:]]
    else:
        size = [math.floor(np.float32(dim) * np.float32(factor))
                for dim, factor in zip(shape[2:], factors, strict=True)]
    result = (*shape[:2], *size)
    if min(size) < 1 or math.prod(result) > most:
        return None
    attrs: dict[str, object] = {"mode": mode}
    if mode != "nearest":
        attrs["coordinate_transformation_mode"] = choices.pick(_COORDINATES)
    elif choices.chance(50):
        attrs |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if by_sizes:
        return result, ("", "", model.constant(np.array(result))), attrs
    return result, ("", model.constant(np.array([1, 1, *factors], np.float32))), attrs

