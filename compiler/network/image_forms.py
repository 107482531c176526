"""Represent tensors of other ranks as images (1, channels, height, width), mostly without moving a byte."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["COLUMNS", "FORMS", "LINE", "ROWS", "Form", "images_of"]


_IMAGE = ("batch", "channels", "height", "width")


@dataclass(frozen=True, slots=True)
class Form:
    """``suffix`` is that of the image's name, and ``channel`` the axis of the model's tensor that counts channels."""

    suffix: str
    channel: int

    def suits(self, shape: tuple[int, ...] | None) -> bool:
        """Tell whether a tensor of ``shape`` may lie so."""
        if self == LINE:
            return shape is not None and len(shape) == 3 and shape[0] == 1
        if self == COLUMNS:
            return shape is not None and len(shape) == 2
        return shape is not None and (len(shape) in (2, 3) or (len(shape) == 4 and shape[0] == 1)) and min(shape) > 0

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the image's shape."""
        if self == LINE:
            return (*shape[:2], 1, shape[2])
        if self == COLUMNS:
            return (1, shape[0], 1, shape[1])
        return (1, shape[-1], *((1,) * (3 - len(shape))), *shape[:-1][-2:])

    def axis(self, axis: int, rank: int) -> int:
        """Return the image's axis that is ``axis`` of the model's tensor."""
        axis %= rank
        if self == LINE:
            return (0, 1, 3)[axis]
        if self == COLUMNS:
            return (1, 3)[axis]
        if axis == rank - 1:
            return 1
        return 0 if rank == len(_IMAGE) and axis == 0 else axis + len(_IMAGE) + 1 - rank

    def of(self, values: np.ndarray, rank: int) -> np.ndarray:
        """Return a constant that is broadcast over tensors of ``rank``, as one that is broadcast over their images."""
        full = values.reshape((1,) * (rank - values.ndim) + values.shape)
        if self == LINE:
            return np.ascontiguousarray(full[:, :, None, :])
        if self == COLUMNS:
            return np.ascontiguousarray(full[None, :, None, :])
        return np.ascontiguousarray(np.moveaxis(full.reshape((1,) * (4 - rank) + full.shape), -1, 1))


LINE = Form(":line", 1)
"""(1, channels, length) as an image of one row: audio, sensors."""

ROWS = Form(":rows", -1)
"""(…, rows, channels) as an image of a pixel per row: operands of a matrix product."""

COLUMNS = Form(":columns", 0)
"""(channels, pixels) as an image of one row: the transposed operand of a matrix product."""

FORMS = (LINE, ROWS, COLUMNS)
"""All of them, each with a suffix of its own."""


def images_of(tensors: Mapping[str, np.ndarray], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return those of ``names`` that are images of ``tensors`` of the model, which have the model's shapes."""
    found = {}
    for name in names:
        for form in FORMS:
            whole = name.removesuffix(form.suffix)
            if whole != name and whole in tensors and form.suits(tensors[whole].shape):
                found[name] = form.of(tensors[whole], tensors[whole].ndim)
    return found
