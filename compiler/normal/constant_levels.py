"""Constants as levels: what a DequantizeLinear of constants holds, moved, and floats that are levels after all."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.values import attribute, constant, is_constant, levels_behind

__all__ = ["ConstantLevels", "dequantised", "lattice", "levels_of_steps", "of_constant", "quantised", "real_constant",
           "requantised"]

_LARGEST = 127
"""Of symmetric int8 levels."""

_MOST_SCALE = np.float32(1e28)
"""Of float32, times a level less its zero point (at most 2^33): the number is still one of float32."""


@dataclass(frozen=True, slots=True)
class ConstantLevels:
    """Levels of a constant: real = (levels - zero) · scale, in float32.

    Attributes
    ----------
    levels : ndarray of integers
    scale, zero : ndarray
        float32, and integers; each of no dimension, or broadcast along the levels.
    """

    levels: np.ndarray
    scale: np.ndarray
    zero: np.ndarray

    @property
    def difference(self) -> np.ndarray:
        """The levels less the zero point, int32."""
        return self.levels.astype(np.int32) - self.zero.astype(np.int32)

    @property
    def real(self) -> np.ndarray:
        """The float32 numbers that the levels stand for, as DequantizeLinear computes them."""
        return np.asarray(self.difference.astype(np.float32) * self.scale, np.float32)

    def axis_of_scales(self) -> tuple[np.ndarray, int | None] | None:
        """Return one scale and no axis, or a scale for each element along an axis; None if neither holds."""
        scale = self.scale
        if scale.size == 0 or _is_one(scale):
            return np.asarray(scale.flat[0] if scale.size else 1, np.float32), None
        return next(((_along(scale, self.levels.shape, axis), axis) for axis in range(self.levels.ndim)
                     if _varies_along(scale, self.levels.shape, axis)), None)

    def axis_of_parameters(self) -> tuple[np.ndarray, np.ndarray, int | None] | None:
        """Return scales, zero points of the levels' type and their axis, as `axis_of_scales` does the scales alone."""
        shape, both = self.levels.shape, (self.scale, self.zero.astype(self.levels.dtype))
        if not self.levels.size:
            return None
        if all(map(_is_one, both)):
            return np.asarray(both[0].flat[0]), np.asarray(both[1].flat[0]), None
        return next(((_along(both[0], shape, axis), _along(both[1], shape, axis), axis) for axis in range(len(shape))
                     if all(_varies_along(each, shape, axis) for each in both)), None)


def _is_one(parameter: np.ndarray) -> bool:
    return bool((parameter == parameter.flat[0]).all())


def _along(parameter: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Return what a parameter is along one axis of levels of ``shape``, at the first place of the others."""
    full = np.broadcast_to(parameter, shape)
    return np.array(full[tuple(slice(None) if each == axis else 0 for each in range(full.ndim))])


def _varies_along(parameter: np.ndarray, shape: tuple[int, ...], axis: int) -> bool:
    """Tell whether a parameter differs along that axis alone."""
    line = _along(parameter, shape, axis).reshape([-1 if each == axis else 1 for each in range(len(shape))])
    return bool((np.broadcast_to(parameter, shape) == line).all())


def of_constant(value: ir.Value | None) -> ConstantLevels | None:
    """Return the levels that a DequantizeLinear of constants makes ``value`` of; None where it does not, or wrongly."""
    node = levels_behind(value)
    if node is None:
        return None
    levels, scale = constant(node.inputs[0]), constant(node.inputs[1])
    zero = constant(node.inputs[2]) if len(node.inputs) > 2 else None
    if levels is None or scale is None or scale.dtype != np.float32 or not np.abs(scale).max(initial=0) < _MOST_SCALE:
        return None
    zero = np.zeros(scale.shape, np.int32) if zero is None else zero.astype(np.int32)
    block, axis = attribute(node, "block_size", 0), attribute(node, "axis", 1)
    if zero.shape != scale.shape or (scale.ndim and not -levels.ndim <= axis < levels.ndim):
        return None
    if block:
        if scale.ndim != levels.ndim or block < 1:
            return None
        places = np.arange(levels.shape[axis]) // block
        others = [each for each in range(levels.ndim) if each != axis % levels.ndim]
        if any(scale.shape[each] != levels.shape[each] for each in others) \
                or (places.size and places[-1] >= scale.shape[axis]):
            return None
        scale, zero = np.take(scale, places, axis), np.take(zero, places, axis)
    elif scale.ndim:
        if scale.shape != (levels.shape[axis],):
            return None
        shape = [-1 if i == axis % levels.ndim else 1 for i in range(levels.ndim)]
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return ConstantLevels(levels, scale, zero)


def real_constant(value: ir.Value | None) -> np.ndarray | None:
    """Return a constant, dequantised if a DequantizeLinear of constants makes it; None of what is computed."""
    if is_constant(value):
        return constant(value)
    held = of_constant(value)
    return None if held is None else held.real


def dequantised(node: ir.Node) -> np.ndarray | None:
    """Return the floats that a DequantizeLinear of constants makes; None of another, or where its shapes do not fit."""
    found = of_constant(node.outputs[0])
    return None if found is None else found.real


def quantised(node: ir.Node, values: np.ndarray) -> np.ndarray | None:
    """Return the levels that a QuantizeLinear of constant parameters makes of constant floats; None of others.

    They are ONNX's: x / scale in float32, rounded half to even, plus the zero point, saturated.
    """
    scale, zero = (constant(each) for each in (*node.inputs, None, None)[1:3])
    if values.dtype != np.float32 or scale is None or zero is None or scale.dtype != np.float32 \
            or attribute(node, "block_size", 0) or zero.shape != scale.shape \
            or not ir.DataType.from_numpy(zero.dtype).is_integer() or not np.isfinite(values).all():
        return None
    axis = attribute(node, "axis", 1)
    if scale.ndim:
        if not -values.ndim <= axis < values.ndim or scale.shape != (values.shape[axis],):
            return None
        shape = [-1 if i == axis % values.ndim else 1 for i in range(values.ndim)]
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    bounds = ml_dtypes.iinfo(zero.dtype)
    with np.errstate(all="ignore"):
        steps = np.rint(values / scale).astype(np.float64) + zero.astype(np.int64)
    return np.clip(steps, bounds.min, bounds.max).astype(zero.dtype)


def lattice(values: np.ndarray, axis: int, most: int = _LARGEST) -> tuple[np.ndarray, np.ndarray] | None:
    """Return levels and a float32 scale for each element along ``axis`` whose products are ``values``, to the bit.

    Levels are within ``most`` of zero, or one below it, and int8 where that holds them, else int16. None where there
    are none: floats that no quantiser has made.
    """
    lines = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    scales = np.ones(len(lines), np.float32)
    for row, line in enumerate(lines):
        sizes = np.unique(np.abs(line))
        if not np.isfinite(line).all() or len(sizes) > most + 2:
            return None
        if sizes[-1] == 0:
            continue
        scale = _step(sizes, most + (line.max() < sizes[-1]))
        if scale is None:
            return None
        scales[row] = scale
    shape = [-1 if i == axis else 1 for i in range(values.ndim)]
    return np.rint(values / scales.reshape(shape)).astype(np.int8 if most <= _LARGEST else np.int16), scales


def levels_of_steps(values: np.ndarray, steps: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return int32 levels, and float32 scales beside ``steps``, whose products are the lines ``values``, to the bit.

    A scale is its step or a neighbour of it. None where there are none, or none within ``most`` of zero.
    """
    scales = np.array(steps, np.float32)
    for row, line in enumerate(values):
        found = next((tried for tried in _neighbours(scales[row]) if _are_multiples(line, tried, most)), None)
        if found is None:
            return None
        scales[row] = found
    return np.rint(values / scales[:, np.newaxis]).astype(np.int32), scales


def _neighbours(step: np.float32) -> list[np.float32]:
    """Return a float32 and the two on each of its sides, the nearest first."""
    found = [step]
    for side in (0, np.inf):
        near = np.nextafter(step, np.float32(side))
        found += [near, np.nextafter(near, np.float32(side))]
    return found


def _are_multiples(line: np.ndarray, step: np.float32, most: int) -> bool:
    """Tell whether floats are up to ``most`` times a step each, to the bit."""
    if not 0 < step < np.inf:
        return False
    times = np.rint(line / step).astype(np.float32)
    return bool((np.abs(times) <= most).all() and (times * step == line).all())


def _step(sizes: np.ndarray, most: int) -> np.float32 | None:
    """Return a float32 step of which all ``sizes`` are multiples, the last at most ``most`` times; None if none is."""
    top = sizes[-1]
    for count in range(1, most + 1):
        step = np.float32(top / np.float32(count))
        # What is no multiple within a thousandth is none of a neighbour in float32 either.
        ratio = sizes.astype(np.float64) / np.float64(step) if step else np.full(sizes.shape, 0.5)
        if np.abs(ratio - np.rint(ratio)).max() > 1e-3:
            continue
        for tried in (step, np.nextafter(step, np.float32(0)), np.nextafter(step, np.float32(np.inf))):
            if tried and bool((np.rint(sizes / tried).astype(np.float32) * tried == sizes).all()):
                return np.float32(tried)
    return None


def requantised(real: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 levels of floats, and the scale of each element along ``axis``: its largest value is 127 levels."""
    others = tuple(each for each in range(real.ndim) if each != axis)
    top = np.abs(real).max(axis=others, keepdims=True, initial=0)
    scale = np.where(top > 0, top / np.float32(_LARGEST), np.float32(1)).astype(np.float32)
    return np.clip(np.rint(real / scale), -_LARGEST, _LARGEST).astype(np.int8), scale.ravel()
