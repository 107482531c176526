"""Resize and Upsample: nearest neighbours as a table per axis, linear and cubic as weighted sums of neighbours.

The coordinates are computed when the model is compiled.
"""

import itertools
import math
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_constant
from tilewright.compiler.kernels.language.c_loops import Dims, loops, offset_text
from tilewright.compiler.kernels.language.checked import Refused, attribute, axis_of, integers, opset, required
from tilewright.compiler.kernels.language.core_cycles import ROW, SINGLE, START, access_cycles
from tilewright.compiler.kernels.language.neighbours import COORDINATES, cubic, linear, originals
from tilewright.compiler.kernels.operators.strided_copy import ANY, CopyKernel, StridedCopy
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["KERNELS", "Resize"]

_TAPS = {"linear": 2, "cubic": 4}
"""Neighbours per axis."""

_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
_REFUSED = (("antialias", 0), ("exclude_outside", 0), ("keep_aspect_ratio_policy", "stretch"))
"""Attributes of which only the default is known."""


class Resize(CopyKernel):
    """Another height and width (or any axes)."""

    exactness = "nearest exact, linear and cubic relative 1e-5"
    limits = "nearest: any dtype; linear, cubic: float32; no antialias, exclude_outside or tf_crop_and_resize"

    def __init__(self, op: str) -> None:
        super().__init__(op)
        self.parameters = MappingProxyType({1: "scales"} if op == "Upsample" else {1: "roi", 2: "scales", 3: "sizes"})

    def result(self, call: Call) -> tuple[str, Dims]:
        mode = _mode(call)
        source = required(call, 0, ANY if mode == "nearest" else ("float32",))
        for name, default in _REFUSED:
            if attribute(call, name, default) != default:
                raise Refused(f"{self.op} must have {name} {default!r}, not {call.attrs[name]!r}")
        if _coordinates(call) not in COORDINATES or _nearest(call) not in _NEAREST:
            raise Refused(f"{self.op} must have a coordinate mode of {', '.join(COORDINATES)}, "
                          f"not {_coordinates(call)}")
        scales = self._scales(call)
        dims = [math.floor(np.float32(dim) * scale) for dim, scale in zip(source.dims, scales, strict=True)]
        if sizes := integers(call, "sizes"):
            dims = list(source.dims)
            for axis, size in zip(self._axes(call), sizes, strict=True):
                dims[axis] = size
        return source.dtype, tuple(dims)

    def moves(self, call: Call) -> list[StridedCopy]:
        source, target = call.inputs[0], call.output
        tables = {}
        for axis, (dim, size, scale) in enumerate(zip(source.dims, target.dims, self._scales(call), strict=True)):
            if dim != size or scale != 1:
                nearest = [_neighbour(_nearest(call), float(x), float(scale)) for x in
                           originals(_coordinates(call), dim, size, scale)]
                tables[axis] = tuple(source.strides[axis] * min(max(each, 0), dim - 1) for each in nearest)
        return [StridedCopy(0, target.dims, target.strides, source.strides, tables=tables)]

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        if _mode(call) == "nearest":
            return super().compute(call, arrays)
        result = arrays[0]
        assert result is not None
        # Axis by axis inside each element: the last axis first, neighbours in order.
        return self._reduced(call, result, 0)

    def _reduced(self, call: Call, array: np.ndarray, axis: int) -> np.ndarray:
        if axis == array.ndim:
            return array
        if axis not in (taps := self._taps(call)):
            return self._reduced(call, array, axis + 1)
        places, weights = taps[axis]
        shape = (-1,) + (1,) * (array.ndim - 1 - axis)
        total: np.ndarray | None = None
        for place, weight in zip(places, weights, strict=True):
            term = self._reduced(call, array.take(place, axis), axis + 1) * weight.reshape(shape)
            total = term if total is None else total + term
        assert total is not None
        return total

    def c_body(self, call: Call, function: str) -> list[str]:
        if _mode(call) == "nearest":
            return super().c_body(call, function)
        source, target = call.inputs[0], call.output
        taps = self._taps(call)
        lines = []
        for axis, (places, weights) in taps.items():
            offsets = (str(place * source.strides[axis]) for row in places.T for place in row)
            factors = (c_constant(each) for row in weights.T for each in row)
            size = len(places) * target.dims[axis]
            lines += [f"static const int32_t from{axis}[{size}] = {{{', '.join(offsets)}}};",
                      f"static const float weight{axis}[{size}] = {{{', '.join(factors)}}};"]

        def element(indices: list[str]) -> list[str]:
            plain = tuple(0 if axis in taps else stride for axis, stride in enumerate(source.strides))
            body = []
            for axis in taps:
                for k in range(len(taps[axis][0])):
                    index = f"{len(taps[axis][0])} * {indices[axis]} + {k}"
                    body += [f"const float w{axis}_{k} = weight{axis}[{index}];"]
            for picks in itertools.product(*(range(len(places)) for places, _ in taps.values())):
                looked = [f"from{axis}[{len(taps[axis][0])} * {indices[axis]} + {k}]"
                          for axis, k in zip(taps, picks, strict=True)]
                body.append(f"const float x{_digits(picks)} = in0["
                            f"{' + '.join([*looked, offset_text(0, plain, indices)])}];")
            text = self._sum(list(taps), [len(places) for places, _ in taps.values()], ())
            return [*body, f"out[{offset_text(0, target.strides, indices)}] = {text};"]

        return lines + loops(target.dims, element)

    def _sum(self, axes: list[int], counts: list[int], picks: tuple[int, ...]) -> str:
        if len(picks) == len(axes):
            return f"x{_digits(picks)}"
        axis = axes[len(picks)]
        terms = (self._sum(axes, counts, (*picks, k)) for k in range(counts[len(picks)]))
        text = " + ".join(f"{term} * w{axis}_{k}" for k, term in enumerate(terms))
        return f"({text})" if picks else text

    def helpers(self, call: Call) -> tuple[str, ...]:
        return super().helpers(call) if _mode(call) == "nearest" else ()

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        if _mode(call) == "nearest":
            return super().cycles(call, memory)
        loads = math.prod(len(places) for places, _ in self._taps(call).values())
        # Every axis but the first weighs the sums of the one inside it: 4 products and 2 for two axes, not 8.
        counts = [len(places) for places, _ in self._taps(call).values()]
        products = sum(math.prod(counts[:axis + 1]) for axis in range(len(counts)))
        work = products * SINGLE["multiply"] + (loads - 1) * SINGLE["add"]
        return START + math.prod(call.output.dims) * (ROW + 2 * loads + access_cycles(memory, loads, 1) + work)

    def _axes(self, call: Call) -> list[int]:
        rank = len(call.inputs[0].dims)
        return [axis_of(axis, rank) for axis in integers(call, "axes") or range(rank)]

    def _scales(self, call: Call) -> list[np.float32]:
        """Return the scale of every axis."""
        dims = call.inputs[0].dims
        scales = [np.float32(1)] * len(dims)
        # Of opset 10 the second input was the scales.
        given = call.attrs.get("scales") or (call.attrs.get("roi") if opset(call) < 11 else None)
        sizes = integers(call, "sizes")
        if not given and not sizes:
            raise Refused(f"{self.op} must have constant scales or sizes")
        axes = self._axes(call)
        wanted = [size / dims[axis] for size, axis in zip(sizes, axes, strict=True)] if sizes else list(given or ())
        if len(wanted) != len(axes) or not all(0 < scale < 1e6 for scale in wanted):
            raise Refused(f"{self.op} must have a positive scale for each of {len(axes)} axes, not {wanted!r}")
        for scale, axis in zip(wanted, axes, strict=True):
            scales[axis] = np.float32(scale)
        return scales

    def _taps(self, call: Call) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Return for each axis that changes its neighbours and their weights, both (taps, size)."""
        source, target = call.inputs[0], call.output
        taps = {}
        for axis, (dim, size, scale) in enumerate(zip(source.dims, target.dims, self._scales(call), strict=True)):
            if dim == size and scale == 1:
                continue
            x = originals(_coordinates(call), dim, size, scale)
            places, weights = linear(x, dim) if _mode(call) == "linear" else cubic(
                x, np.float32(attribute(call, "cubic_coeff_a", -0.75)))
            taps[axis] = np.clip(places, 0, dim - 1), weights.astype(np.float32)
        if not taps:
            taps[0] = np.arange(source.dims[0])[None], np.ones((1, source.dims[0]), np.float32)
        return taps


def _digits(picks: tuple[int, ...]) -> str:
    return "_".join(map(str, picks))


def _mode(call: Call) -> str:
    mode = attribute(call, "mode", "nearest")
    if mode not in ("nearest", *_TAPS):
        raise Refused(f"{call.kernel} must have mode nearest, linear or cubic, not {mode!r}")
    return str(mode)


def _is_old(call: Call) -> bool:
    return call.kernel == "Upsample" or opset(call) < 11


def _coordinates(call: Call) -> str:
    default = "asymmetric" if _is_old(call) else "half_pixel"
    return str(attribute(call, "coordinate_transformation_mode", default))


def _nearest(call: Call) -> str:
    return str(attribute(call, "nearest_mode", "simple" if _is_old(call) else "round_prefer_floor"))


def _neighbour(mode: str, x: float, scale: float) -> int:
    """Return the index nearest to ``x``."""
    match mode:
        case "floor":
            return math.floor(x)
        case "ceil":
            return math.ceil(x)
        case "round_prefer_ceil":
            return math.floor(x + 0.5)
        case "round_prefer_floor":
            return math.ceil(x - 0.5)
    return math.ceil(x) if scale < 1 else int(x)


KERNELS = (Resize("Resize"), Resize("Upsample"))
