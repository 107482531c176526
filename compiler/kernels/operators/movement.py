"""Transposition, reshaping, slices, concatenation, padding and their kin, each as strided copies."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tilewright.compiler.kernels.language.c_loops import Dims, broadcast_strides, loops, offset_text
from tilewright.compiler.kernels.language.checked import (
    Refused,
    at_most,
    attribute,
    axis_of,
    broadcast,
    integers,
    operand,
    optional,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import ROW, START, access_cycles
from tilewright.compiler.kernels.language.kernel import CTYPES
from tilewright.compiler.kernels.operators.strided_copy import (
    ANY,
    CopyKernel,
    StridedCopy,
    c_move,
    copy_helpers,
    move_cycles,
    whole,
)
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

__all__ = [
    "KERNELS", "ConcatKernel", "DepthToSpaceKernel", "ExpandKernel", "GatherKernel", "PadKernel", "ReshapeKernel",
    "SliceKernel", "SpaceToDepthKernel", "TileKernel", "TransposeKernel",
]


_DIVIDED = 60
"""Cycles to find where an element lies by dividing its number, on both sides."""


class TransposeKernel(CopyKernel):
    """Axes in another order."""

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ANY)
        return source.dtype, tuple(source.dims[axis] for axis in self._order(call, source))

    def moves(self, call: Call) -> list[StridedCopy]:
        source = call.inputs[0]
        strides = tuple(source.strides[axis] for axis in self._order(call, source))
        return [StridedCopy(0, call.output.dims, call.output.strides, strides)]

    def _order(self, call: Call, source: Operand) -> list[int]:
        rank = len(source.dims)
        given = integers(call, "perm")
        order = list(reversed(range(rank))) if given is None else [axis_of(axis, rank) for axis in given]
        if sorted(order) != list(range(rank)):
            raise Refused(f"Transpose must have every axis once in perm, not {given!r}")
        return order


class ReshapeKernel(CopyKernel):
    """Other dims over the same elements in row-major order: Reshape, Flatten, Squeeze, Unsqueeze."""

    def __init__(self, op: str, parameters: Mapping[int, str]) -> None:
        super().__init__(op)
        self.parameters = parameters

    def result(self, call: Call) -> tuple[str, Dims]:
        source = required(call, 0, ANY)
        at_most(call, 1)
        if math.prod(source.dims) != math.prod(call.output.dims):
            raise Refused(f"{self.op} must have as many elements in its result as in {source.dims!r}, "
                          f"not {call.output.dims!r}")
        return source.dtype, call.output.dims

    def moves(self, call: Call) -> list[StridedCopy]:
        fitted = _common(_runs(call.output), _runs(call.inputs[0]))
        if fitted is None:
            raise Refused(f"{self.op} has no common dims for {call.inputs[0].dims} and {call.output.dims}")
        return [StridedCopy(0, *fitted)]

    def c_body(self, call: Call, function: str) -> list[str]:
        if _common(_runs(call.output), _runs(call.inputs[0])) is not None:
            return super().c_body(call, function)

        def element(indices: list[str]) -> list[str]:
            target, source = (_divided(each, indices[0]) for each in (call.output, call.inputs[0]))
            return [f"out[{target}] = in0[{source}];"]

        return loops((math.prod(call.output.dims),), element)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        if _common(_runs(call.output), _runs(call.inputs[0])) is not None:
            return super().cycles(call, memory)
        return START + math.prod(call.output.dims) * (_DIVIDED + access_cycles(memory, 1, 1))

    def helpers(self, call: Call) -> tuple[str, ...]:
        return super().helpers(call) if _common(_runs(call.output), _runs(call.inputs[0])) is not None else ()


def _runs(operand: Operand) -> list[tuple[int, int]]:
    """Return (dim, stride) pairs, outermost first, with neighbours joined where they lie contiguously."""
    joined: list[tuple[int, int]] = []
    for dim, stride in zip(operand.dims, operand.strides, strict=True):
        if dim == 1:
            continue
        if joined and joined[-1][1] == dim * stride:
            joined[-1] = joined[-1][0] * dim, stride
        else:
            joined.append((dim, stride))
    return joined


def _common(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> tuple[Dims, Dims, Dims] | None:
    """Return dims that both can be split into, with the strides of each; None if there are none."""
    left, right = list(left), list(right)
    found: list[tuple[int, int, int]] = []
    while left and right:
        (size, stride), (other, other_stride) = left.pop(), right.pop()
        part = min(size, other)
        if size % part or other % part:
            return None
        found.append((part, stride, other_stride))
        if size > part:
            left.append((size // part, stride * part))
        if other > part:
            right.append((other // part, other_stride * part))
    dims, strides, others = zip(*reversed(found), strict=True) if found else ((), (), ())
    return dims, strides, others


def _divided(operand: Operand, index: str) -> str:
    """Return the C text of the offset of the element that is number ``index`` in row-major order."""
    terms = []
    below = 1
    for dim, stride in reversed(_runs(operand)):
        quotient = index if below == 1 else f"{index} / {below}"
        terms.append(f"{quotient} % {dim} * {stride}")
        below *= dim
    return " + ".join(reversed(terms)) or "0"


class ExpandKernel(CopyKernel):
    """Repetition along axes of one element."""

    parameters = MappingProxyType({1: "shape"})

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ANY)
        return source.dtype, broadcast(call, [source.dims, call.output.dims])

    def moves(self, call: Call) -> list[StridedCopy]:
        strides = broadcast_strides(call.inputs[0].dims, call.inputs[0].strides, call.output.dims)
        return [StridedCopy(0, call.output.dims, call.output.strides, strides)]


class TileKernel(CopyKernel):
    """The whole tensor several times along each axis."""

    parameters = MappingProxyType({1: "repeats"})

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ANY)
        repeats = integers(call, "repeats")
        if repeats is None or len(repeats) != len(source.dims) or min(repeats, default=1) < 1:
            raise Refused(f"Tile must have one positive number for each of {len(source.dims)} axes as repeats, "
                          f"not {repeats!r}")
        return source.dtype, tuple(dim * times for dim, times in zip(source.dims, repeats, strict=True))

    def moves(self, call: Call) -> list[StridedCopy]:
        source, target = call.inputs[0], call.output
        times = tuple(out // dim for out, dim in zip(target.dims, source.dims, strict=True))
        far = tuple(stride * dim for stride, dim in zip(target.strides, source.dims, strict=True))
        return [StridedCopy(0, times + source.dims, far + target.strides, (0,) * len(times) + source.strides)]


class SliceKernel(CopyKernel):
    """Elements from a start to an end in steps, along some axes."""

    parameters = MappingProxyType({1: "starts", 2: "ends", 3: "axes", 4: "steps"})

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ANY)
        return source.dtype, tuple(len(each) for each in self._ranges(call, source.dims))

    def moves(self, call: Call) -> list[StridedCopy]:
        source = call.inputs[0]
        ranges = self._ranges(call, source.dims)
        first = sum(each.start * stride for each, stride in zip(ranges, source.strides, strict=True))
        strides = tuple(each.step * stride for each, stride in zip(ranges, source.strides, strict=True))
        return [StridedCopy(0, call.output.dims, call.output.strides, strides, 0, first)]

    def _ranges(self, call: Call, dims: Dims) -> list[range]:
        starts, ends = integers(call, "starts"), integers(call, "ends")
        if starts is None or ends is None:
            raise Refused("Slice must have constant starts and ends")
        axes = integers(call, "axes") or list(range(len(starts)))
        steps = integers(call, "steps") or [1] * len(starts)
        ranges = [range(dim) for dim in dims]
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            where = axis_of(axis, len(dims))
            ranges[where] = range(dims[where])[slice(start, end, step)]
            if step < 0 and end < -dims[where]:  # Python, too, takes such an end for one before the first
                ranges[where] = range(dims[where])[slice(start, None, step)]
        return ranges


class ConcatKernel(CopyKernel):
    """Tensors one after the other along an axis."""

    def result(self, call: Call) -> tuple[str, Dims]:
        first = required(call, 0, ANY)
        axis = self._axis(call)
        for position in range(len(call.inputs)):
            each = required(call, position, (first.dtype,))
            if len(each.dims) != len(first.dims) or _without(each.dims, axis) != _without(first.dims, axis):
                raise Refused(f"Concat must have inputs equal in all axes but {axis}, not {first.dims} and {each.dims}")
        total = sum(each.dims[axis] for each in call.inputs)
        return first.dtype, (*first.dims[:axis], total, *first.dims[axis + 1:])

    def moves(self, call: Call) -> list[StridedCopy]:
        axis = self._axis(call)
        moves = []
        start = 0
        for position, each in enumerate(call.inputs):
            moves.append(whole(position, each, call.output, offset=start * call.output.strides[axis]))
            start += each.dims[axis]
        return moves

    def _axis(self, call: Call) -> int:
        return axis_of(attribute(call, "axis", 1), len(call.inputs[0].dims))


def _without(dims: Dims, axis: int) -> Dims:
    return dims[:axis] + dims[axis + 1:]


class PadKernel(CopyKernel):
    """A border: a constant, the edge, or the tensor mirrored or continued."""

    limits = "any dtype; modes constant, edge, reflect, wrap; negative pads in constant mode"
    parameters = MappingProxyType({1: "pads", 3: "axes"})

    def result(self, call: Call) -> tuple[str, Dims]:
        source = required(call, 0, ANY)
        value = optional(call, 2, (source.dtype,))
        if value is not None and math.prod(value.dims) != 1:
            raise Refused(f"Pad must have one number as constant_value, not {value.dims!r}")
        dims = []
        for dim, (before, after) in zip(source.dims, self._pads(call, source), strict=True):
            if self._mode(call) != "constant" and min(before, after) < 0:
                raise Refused(f"Pad must have pads from 0 in mode {self._mode(call)}, not {before} and {after}")
            if self._mode(call) == "reflect" and max(before, after) >= dim:
                raise Refused(f"Pad must have pads below {dim} in mode reflect, not {before} and {after}")
            dims.append(dim + before + after)
        return source.dtype, tuple(dims)

    def moves(self, call: Call) -> list[StridedCopy]:
        source, target = call.inputs[0], call.output
        pads = self._pads(call, source)
        if self._mode(call) != "constant":
            tables = {axis: tuple(stride * self._origin(call, index - before, dim) for index in range(size))
                      for axis, (dim, size, stride, (before, after))
                      in enumerate(zip(source.dims, target.dims, source.strides, pads, strict=True)) if before or after}
            return [StridedCopy(0, target.dims, target.strides, source.strides, tables=tables)]
        kept = [range(max(0, -before), dim - max(0, -after)) for dim, (before, after)
                in zip(source.dims, pads, strict=True)]
        offset = sum(max(0, before) * stride for (before, _), stride in zip(pads, target.strides, strict=True))
        first = sum(each.start * stride for each, stride in zip(kept, source.strides, strict=True))
        copy = StridedCopy(0, tuple(map(len, kept)), target.strides, source.strides, offset, first)
        nowhere = (0,) * len(target.dims)
        fill = StridedCopy(None, target.dims, target.strides, nowhere, value=attribute(call, "value", 0))
        if len(call.inputs) > 2 and call.inputs[2].dtype:
            fill = replace(fill, source=2)
        border = [fill] if copy.dims != target.dims else []
        return [*border, *([copy] if math.prod(copy.dims) else [])]

    def _mode(self, call: Call) -> str:
        mode = attribute(call, "mode", "constant")
        if mode not in ("constant", "edge", "reflect", "wrap"):
            raise Refused(f"Pad must have mode constant, edge, reflect or wrap, not {mode!r}")
        return str(mode)

    def _origin(self, call: Call, index: int, dim: int) -> int:
        """Return where along an axis of ``dim`` the element at ``index``, maybe outside, comes from."""
        match self._mode(call):
            case "edge":
                return min(max(index, 0), dim - 1)
            case "wrap":
                return index % dim
        return dim - 1 - abs(dim - 1 - abs(index))

    def _pads(self, call: Call, source: Operand) -> list[tuple[int, int]]:
        given = integers(call, "pads")
        rank = len(source.dims)
        axes = integers(call, "axes") or list(range(rank))
        if given is None or len(given) != 2 * len(axes):
            raise Refused(f"Pad must have two constant pads for each of {len(axes)} axes, not {given!r}")
        pads = [(0, 0)] * rank
        for k, axis in enumerate(axes):
            pads[axis_of(axis, rank)] = given[k], given[k + len(axes)]
        return pads


class GatherKernel(CopyKernel):
    """Elements at indices along an axis, which are constants or computed."""

    limits = "any dtype; computed indices beyond the axis are taken as the nearest on it"
    parameters = MappingProxyType({1: "indices"})
    computable = frozenset({1})

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 2)
        source = required(call, 0, ANY)
        axis, places = self._axis(call), operand(call, 1)
        if places is not None:
            required(call, 1, ("int32", "int64"))
        dims = self._indices(call).shape if places is None else places.dims
        return source.dtype, source.dims[:axis] + dims + source.dims[axis + 1:]

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        if operand(call, 1) is None:
            return super().compute(call, arrays)
        source, places = arrays
        assert source is not None
        assert places is not None
        extent, axis = call.inputs[0].dims[self._axis(call)], self._axis(call)
        return np.take(source, np.clip(np.where(places < 0, places + extent, places), 0, extent - 1), axis)

    def c_body(self, call: Call, function: str) -> list[str]:
        places = operand(call, 1)
        if places is None:
            return super().c_body(call, function)
        axis, ctype = self._axis(call), CTYPES[call.output.dtype]
        extent, behind = call.inputs[0].dims[axis], axis + len(places.dims)

        def row(indices: list[str]) -> list[str]:
            target = offset_text(0, call.output.strides[:behind], indices)
            source = offset_text(0, call.inputs[0].strides[:axis], indices[:axis])
            return [
                f"{CTYPES[places.dtype]} at = in1[{offset_text(0, places.strides, indices[axis:])}];",
                f"if (at < 0) at += {extent};",
                f"const int32_t place = at < 0 ? 0 : at >= {extent} ? {extent - 1} : (int32_t)at;",
                f"{ctype} *const to = out + {target};",
                f"const {ctype} *const from = in0 + {source} + place * {call.inputs[0].strides[axis]};",
                *c_move(self._row(call), call, "", ("to", "from"))]

        return loops(call.output.dims[:behind], row)

    def helpers(self, call: Call) -> tuple[str, ...]:
        if operand(call, 1) is None:
            return super().helpers(call)
        return copy_helpers(self._row(call), call)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        places = operand(call, 1)
        if places is None:
            return super().cycles(call, memory)
        rows = math.prod(call.output.dims[:self._axis(call) + len(places.dims)])
        return START + rows * (ROW + access_cycles(memory, 1) + move_cycles(self._row(call), call, memory))

    def bytes_read(self, call: Call) -> int:
        every = super().bytes_read(call)
        return every if operand(call, 1) is None else min(every, call.inputs[1].span_bytes + call.output.span_bytes)

    def _row(self, call: Call) -> StridedCopy:
        """Return the copy of what lies behind one place on the axis."""
        source, axis = call.inputs[0], self._axis(call)
        behind = len(call.output.dims) - len(source.dims[axis + 1:])
        return StridedCopy(0, source.dims[axis + 1:], call.output.strides[behind:], source.strides[axis + 1:])

    def moves(self, call: Call) -> list[StridedCopy]:
        source, target, axis = call.inputs[0], call.output, self._axis(call)
        indices = self._indices(call)
        made = target.strides[axis:axis + indices.ndim]
        lists = indices if indices.ndim else indices.reshape(1)
        dims = (*source.dims[:axis], lists.shape[-1], *source.dims[axis + 1:])
        strides = (*target.strides[:axis], *(made[-1:] or (0,)), *target.strides[axis + indices.ndim:])
        return [StridedCopy(0, dims, strides, source.strides,
                            offset=sum(each * step for each, step in zip(place, made, strict=False)),
                            tables={axis: tuple(int(index) * source.strides[axis] for index in lists[place])})
                for place in np.ndindex(lists.shape[:-1])]

    def _axis(self, call: Call) -> int:
        return axis_of(attribute(call, "axis", 0), len(call.inputs[0].dims))

    def _indices(self, call: Call) -> np.ndarray:
        stated = np.array(attribute(call, "indices", []), object)
        values = integers(replace(call, attrs={"indices": stated.ravel().tolist()}), "indices")
        if not values:
            raise Refused("Gather must have constant indices")
        extent = call.inputs[0].dims[self._axis(call)]
        if wrong := [each for each in values if not -extent <= each < extent]:
            raise Refused(f"Gather must have indices from {-extent} to {extent - 1}, not {wrong[0]}")
        return np.array([each % extent for each in values], np.int64).reshape(stated.shape)


class DepthToSpaceKernel(CopyKernel):
    """Channels to blocks of pixels."""

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ANY)
        block = int(call.attrs["blocksize"])
        count, channels, height, width = source.dims
        if block < 1 or channels % block**2 or attribute(call, "mode", "DCR") not in ("DCR", "CRD"):
            raise Refused(f"DepthToSpace must have channels that {block}**2 divides and mode DCR or CRD, "
                          f"not {channels} and {call.attrs.get('mode')!r}")
        return source.dtype, (count, channels // block**2, height * block, width * block)

    def moves(self, call: Call) -> list[StridedCopy]:
        source, target, block = call.inputs[0], call.output, int(call.attrs["blocksize"])
        n, c, h, w = source.strides
        depth = target.dims[1]
        if attribute(call, "mode", "DCR") == "DCR":
            own, row, column = c, c * depth * block, c * depth
        else:
            own, row, column = c * block**2, c * block, c
        tn, tc, th, tw = target.strides
        height, width = source.dims[2:]
        return [StridedCopy(0, (source.dims[0], depth, height, block, width, block),
                            (tn, tc, th * block, th, tw * block, tw), (n, own, h, row, w, column))]


class SpaceToDepthKernel(CopyKernel):
    """Blocks of pixels to channels."""

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 1)
        source = required(call, 0, ANY)
        block = int(call.attrs["blocksize"])
        count, channels, height, width = source.dims
        if block < 1 or height % block or width % block:
            raise Refused(f"SpaceToDepth must have height and width that {block} divides, not {height} and {width}")
        if attribute(call, "mode", "DCR") not in ("DCR", "CRD"):
            raise Refused(f"SpaceToDepth must have mode DCR or CRD, not {call.attrs['mode']!r}")
        return source.dtype, (count, channels * block**2, height // block, width // block)

    def moves(self, call: Call) -> list[StridedCopy]:
        source, target, block = call.inputs[0], call.output, int(call.attrs["blocksize"])
        n, c, h, w = source.strides
        tn, tc, th, tw = target.strides
        channels = source.dims[1]
        _, _, height, width = target.dims
        if attribute(call, "mode", "DCR") == "DCR":
            own, row, column = tc, tc * channels * block, tc * channels
        else:
            own, row, column = tc * block**2, tc * block, tc
        return [StridedCopy(0, (source.dims[0], block, block, channels, height, width),
                            (tn, row, column, own, th, tw), (n, h, w, c, h * block, w * block))]


KERNELS = (
    TransposeKernel("Transpose"), ReshapeKernel("Reshape", {1: "shape"}), ReshapeKernel("Flatten", {}),
    ReshapeKernel("Squeeze", {1: "axes"}), ReshapeKernel("Unsqueeze", {1: "axes"}), ExpandKernel("Expand"),
    TileKernel("Tile"), SliceKernel("Slice"), ConcatKernel("Concat"), PadKernel("Pad"), GatherKernel("Gather"),
    DepthToSpaceKernel("DepthToSpace"), SpaceToDepthKernel("SpaceToDepth"),
)
