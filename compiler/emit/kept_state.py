"""State of a C project for a board: what an output leaves in memory for the next call, and how it becomes an input."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.operands import tensor_operand
from tilewright.errors import InputError

__all__ = ["KeptState", "StateError", "kept_states", "start_value"]

_LEVELS, _WORD = 256, 4
_FLOATS = ("float32", "float16")

Described = Callable[[TensorInfo, int], dict[str, Any]]
"""Describes a tensor at its address to the templates."""


class StateError(InputError):
    """State cannot be kept on a board; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """One tensor of state: the input that it is in this call, and the output that it becomes.

    Attributes
    ----------
    into, out : dict
        What the templates say of the two tensors.
    start : str
        Value of all its elements before the first call, in C, as memory has it.
    levels : tuple of int
        The level of the input for each level of the output, from -128 on; empty if both are the same.
    words : int
        Words that are moved, where both tensors lie in memory alike, in one piece; 0 where elements are.
    bytes : int
    """

    into: dict[str, Any]
    out: dict[str, Any]
    start: str
    levels: tuple[int, ...]
    words: int
    bytes: int


def start_value(info: TensorInfo) -> int:
    """Return the element of an input's array that stands for zero: of one that is quantised, its zero point."""
    if info.onnx_dtype in ("int8", "uint8") and info.dtype == "int8":
        return info.zero_point + (128 if info.onnx_dtype == "uint8" else 0)
    return 0


def kept_states(state: Mapping[str, str], inputs: Sequence[tuple[TensorInfo, int]],
                outputs: Sequence[tuple[TensorInfo, int]], described: Described) -> list[KeptState]:
    """Return what is kept from call to call for each of ``inputs`` that ``state`` names.

    Parameters
    ----------
    state : mapping of str to str
        Names of outputs by names of inputs, as the model has them.
    inputs, outputs : sequence of (TensorInfo, int)
        The network's, with their addresses.

    Raises
    ------
    StateError
        If one end is made of levels and the other is not.
    """
    made = {info.onnx_name: (info, address) for info, address in reversed(outputs)}
    return [_kept(info, address, *made[state[str(info.onnx_name)]], described)
            for info, address in inputs if info.onnx_name in state]


def _kept(before: TensorInfo, to: int, after: TensorInfo, origin: int, described: Described) -> KeptState:
    """Return one tensor of state."""
    if (before.dtype, before.channels) != (after.dtype, after.channels):
        raise StateError(f"State must be of one type in memory for a board, and input {before.onnx_name!r} is "
                         f"{before.dtype} there, its output {after.onnx_name!r} {after.dtype}; quantise both ends")
    levels = _levels(before, after) if before.dtype == "int8" and before.onnx_dtype in _FLOATS else ()
    start = before.zero_point if before.dtype == "int8" else 0
    return KeptState(into=described(before, to), out=described(after, origin), start=str(start), levels=levels,
                     words=0 if levels or to % _WORD or origin % _WORD else _words(before, after), bytes=before.bytes)


def _words(before: TensorInfo, after: TensorInfo) -> int:
    """Return the words of two tensors that lie in memory alike and in one piece; 0 of others."""
    one, other = (tensor_operand(info.of_image, 0) for info in (before, after))
    steps = [[(extent, step) for extent, step in zip(each.dims, each.strides, strict=True) if extent > 1]
             for each in (one, other)]
    words, rest = divmod(before.bytes, _WORD)
    return words if steps[0] == steps[1] and one.span_bytes == before.bytes and not rest else 0


def _levels(before: TensorInfo, after: TensorInfo) -> tuple[int, ...]:
    """Return the input's level for each of the output's: dequantised and quantised, as ONNX Runtime does it."""
    if (before.scale, before.zero_point) == (after.scale, after.zero_point):
        return ()
    values = (np.arange(_LEVELS, dtype=np.int32) - _LEVELS // 2 - after.zero_point).astype(np.float32) * after.scale
    found = np.clip(np.rint(values / before.scale) + before.zero_point, -128, 127).astype(int)
    return tuple(found.tolist())
