"""Tensors as rows: for each index of the kept axes, the elements along the others, in row-major order."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.kernels.language.c_loops import INDENT, Dims, loops, offset_text
from tilewright.isa.program import Operand

__all__ = ["Rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Which axes of a tensor run along a row, and which count the rows; both in the tensor's order."""

    dims: Dims
    along: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes that count the rows."""
        return tuple(axis for axis in range(len(self.dims)) if axis not in self.along)

    @property
    def length(self) -> int:
        """Elements of a row."""
        return math.prod(self.dims[axis] for axis in self.along)

    @property
    def count(self) -> int:
        """Rows."""
        return math.prod(self.dims[axis] for axis in self.kept)

    def split(self, array: np.ndarray) -> np.ndarray:
        """Return ``array`` as (length, count): element k of all rows together."""
        return array.transpose(*self.along, *self.kept).reshape(self.length, self.count)

    def joined(self, rows: np.ndarray) -> np.ndarray:
        """Return the tensor that :meth:`split` has split."""
        order = (*self.along, *self.kept)
        return rows.reshape([self.dims[axis] for axis in order]).transpose(np.argsort(order))

    def result_dims(self, *, keep: bool) -> Dims:
        """Return the dims of one number per row, with the axes along it as ones or without them."""
        return tuple(1 if axis in self.along else dim for axis, dim in enumerate(self.dims)
                     if keep or axis not in self.along)

    def each_row(self, body: Callable[[list[str]], Iterable[str]], *, unrolled: int = 1) -> list[str]:
        """Return the C loops over the rows, ``unrolled`` at a time; ``body`` takes an index per kept axis."""
        return loops(tuple(self.dims[axis] for axis in self.kept), body, prefix="i", unrolled=unrolled)

    def each_element(self, body: Callable[[list[str]], Iterable[str]]) -> list[str]:
        """Return C loops along a row, in a separate scope; ``body`` takes an index per axis along it."""
        lines = loops(tuple(self.dims[axis] for axis in self.along), body, prefix="k")
        return lines if self.length > 1 else ["{", *(INDENT + line for line in lines), "}"]

    def offset(self, strides: Dims, indices: Sequence[str]) -> str:
        """Return the C text of an element's place, by an index per kept axis, then one per axis along the row."""
        return offset_text(0, [strides[axis] for axis in (*self.kept, *self.along)], indices)

    def element(self, pointer: str, operand: Operand, row: Sequence[str], element: Sequence[str]) -> str:
        """Return the C text of an element of an operand with these dims."""
        strides = [operand.strides[axis] for axis in (*self.kept, *self.along)]
        return f"{pointer}[{offset_text(0, strides, [*row, *element])}]"

    def number(self, pointer: str, operand: Operand, row: Sequence[str]) -> str:
        """Return the C text of a row's number in an operand with the dims of :meth:`result_dims`."""
        full = len(operand.dims) == len(self.dims)
        strides = [operand.strides[axis] for axis in self.kept] if full else operand.strides
        return f"{pointer}[{offset_text(0, strides, row)}]"
