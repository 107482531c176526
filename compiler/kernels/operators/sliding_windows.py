"""Windows that slide over an image of one to three dimensions: the inputs that each output reads, in C and NumPy.

Along an axis, output ``o`` reads input ``o * stride - before + k * dilation`` at tap ``k`` of the kernel, if that is
inside the image. Transposed, input ``i`` goes to the output of that formula, so output ``o`` reads
``(o + before - k * dilation) / stride`` where that is whole and inside.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tilewright.compiler.kernels.language.c_loops import INDENT, Dims, offset_text
from tilewright.compiler.kernels.language.checked import Refused, attribute, integers
from tilewright.isa.program import Call

__all__ = ["SlidingWindow", "WindowAxis", "window_of"]

_MAX_ELEMENTS = 1 << 31
_MAX_REACH = 1 << 20
"""Of a window along an axis, and taps of a kernel: far more than any network has, and no work to check."""


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """A window along one axis; ``after`` is the padding after the image; all sizes in elements."""

    size: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    ceil: bool = False
    transposed: bool = False
    extra: int = 0

    @property
    def reach(self) -> int:
        """Number of inputs that the kernel spans."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        if self.transposed:
            return (self.size - 1) * self.stride + self.reach + self.extra - self.before - self.after
        free = self.size + self.before + self.after - self.reach
        if free < 0:
            return 0
        count = (-(-free // self.stride) if self.ceil else free // self.stride) + 1
        # The last window must start inside the image or the padding before it.
        return count - 1 if self.ceil and (count - 1) * self.stride >= self.size + self.before else count

    def taken(self, tap: int) -> tuple[slice, slice] | None:
        """Return the outputs for which ``tap`` reads inside the image, and these inputs; None if there are none."""
        shift = tap * self.dilation - self.before
        if self.transposed:
            first = max(0, -(shift // self.stride))
            last = min(self.size - 1, (self.outputs - 1 - shift) // self.stride)
            if first > last:
                return None
            start = first * self.stride + shift
            return slice(start, last * self.stride + shift + 1, self.stride), slice(first, last + 1)
        first = max(0, -(shift // self.stride))
        last = min(self.outputs - 1, (self.size - 1 - shift) // self.stride)
        if first > last:
            return None
        start = first * self.stride + shift
        return slice(first, last + 1), slice(start, last * self.stride + shift + 1, self.stride)

    def counts(self, *, padding: bool) -> list[int]:
        """Return how many taps of each output lie inside the image, or inside it and its padding."""
        low, high = (-self.before, self.size + self.after) if padding else (0, self.size)
        counts = []
        for start in range(-self.before, self.outputs * self.stride - self.before, self.stride):
            first = max(0, -((start - low) // self.dilation))
            last = min(self.kernel - 1, (high - 1 - start) // self.dilation)
            counts.append(max(0, last - first + 1))
        return counts

    def lines(self, axis: int, output: str, body: Iterable[str]) -> list[str]:
        """Return the C loop over the taps, around ``body``, which finds the input's index in ``y<axis>``."""
        tap, place = f"k{axis}" if self.kernel > 1 else "0", f"y{axis}"
        if self.transposed:
            lines = [f"const int32_t t{axis} = {_sum([(1, output), (-self.dilation, tap)], self.before)};"]
            inside = f"t{axis} >= 0 && t{axis} % {self.stride} == 0 && t{axis} / {self.stride} < {self.size}"
            inner = [f"const int32_t {place} = t{axis} / {self.stride};", *body]
            lines += [f"if ({inside}) {{", *(INDENT + line for line in inner), "}"]
        else:
            index = _sum([(self.stride, output), (self.dilation, tap)], -self.before)
            lines = [f"const int32_t {place} = {index};"]
            last = (self.outputs - 1) * self.stride + self.reach - 1 - self.before
            guards = [f"{place} >= 0"] * (self.before > 0) + [f"{place} < {self.size}"] * (last >= self.size)
            lines += [f"if ({' && '.join(guards)}) {{", *(INDENT + line for line in body), "}"] if guards else body
        if self.kernel == 1:
            return lines
        return [f"for (int32_t {tap} = 0; {tap} < {self.kernel}; {tap}++) {{", *(INDENT + line for line in lines), "}"]


def _sum(terms: list[tuple[int, str]], constant: int) -> str:
    """Return the C text of a sum of factors times indices and a constant."""
    factors, names = zip(*terms, strict=True)
    text = offset_text(0, factors, names)
    if constant == 0 or text == "0":
        return text if constant == 0 else str(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}"


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """A window over the axes of an image from the third on."""

    axes: tuple[WindowAxis, ...]

    @property
    def outputs(self) -> Dims:
        """The dims of the result from the third on."""
        return tuple(axis.outputs for axis in self.axes)

    @property
    def kernel(self) -> Dims:
        """Taps along each axis."""
        return tuple(axis.kernel for axis in self.axes)

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
        """Yield each tap that reads anything: its place in the kernel, the outputs, and the inputs that they read."""
        for taps in itertools.product(*map(range, self.kernel)):
            taken = [axis.taken(tap) for axis, tap in zip(self.axes, taps, strict=True)]
            if all(taken):
                yield taps, tuple(each[0] for each in taken if each), tuple(each[1] for each in taken if each)

    def lines(self, outputs: list[str], body: Callable[[list[str], list[str]], Iterable[str]]) -> list[str]:
        """Return the C loops over the taps; ``body`` takes the input's indices and the tap's."""
        places = [f"y{axis}" for axis in range(len(self.axes))]
        taps = [f"k{axis}" if each.kernel > 1 else "0" for axis, each in enumerate(self.axes)]
        lines = list(body(places, taps))
        for axis in reversed(range(len(self.axes))):
            lines = self.axes[axis].lines(axis, outputs[axis], lines)
        return lines

    @property
    def reads(self) -> int:
        """Taps that lie inside the image, of all outputs together."""
        return math.prod(sum(taken[0].stop - taken[0].start if not axis.transposed else taken[1].stop - taken[1].start
                             for tap in range(axis.kernel) if (taken := axis.taken(tap))) for axis in self.axes)


def window_of(call: Call, sizes: Dims, kernel: Dims, *, transposed: bool = False) -> SlidingWindow:
    """Return the window that the attributes of ``call`` describe over an image of ``sizes``.

    Raises
    ------
    Refused
        If they make none.
    """
    rank = len(sizes)
    if math.prod(kernel) > _MAX_REACH:
        raise Refused(f"{call.kernel} must have a kernel of at most {_MAX_REACH} taps, not {kernel!r}")
    given = integers(call, "kernel_shape")
    if rank not in (1, 2, 3) or len(kernel) != rank or (given is not None and tuple(given) != kernel):
        raise Refused(f"{call.kernel} must have a kernel of 1 to 3 dims, as many as its image, "
                      f"not {kernel!r} for {sizes!r}")
    strides, dilations, extra = (_list(call, name, rank, default) for name, default in
                                 (("strides", 1), ("dilations", 1), ("output_padding", 0)))
    pads = _list(call, "pads", 2 * rank, 0)
    ceil = bool(attribute(call, "ceil_mode", 0))
    auto = attribute(call, "auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Refused(f"{call.kernel} must have auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {auto!r}")
    wanted = integers(call, "output_shape")
    axes = []
    for k in range(rank):
        before, after = (pads[k], pads[k + rank]) if auto == "NOTSET" else (0, 0)
        axis = WindowAxis(sizes[k], kernel[k], strides[k], dilations[k], before, after, ceil, transposed, extra[k])
        if min(kernel[k], strides[k], dilations[k]) < 1 or min(before, after, extra[k]) < 0:
            raise Refused(f"{call.kernel} must have kernel, strides and dilations from 1 and pads from 0, not {axis}")
        if axis.reach > _MAX_REACH:
            raise Refused(f"{call.kernel} must have windows over at most {_MAX_REACH} elements, not {axis.reach}")
        axes.append(_padded(axis, auto, wanted[-rank:][k] if wanted and transposed else None))
        if not 0 < axes[-1].outputs < _MAX_ELEMENTS:
            raise Refused(f"{call.kernel} must have an image as large as its kernel, not {sizes!r} for {kernel!r}")
    return SlidingWindow(tuple(axes))


def _padded(axis: WindowAxis, auto: str, wanted: int | None) -> WindowAxis:
    """Return ``axis`` with the padding that ``auto_pad`` or ``output_shape`` asks for."""
    if axis.transposed:
        if wanted is None and auto not in ("SAME_UPPER", "SAME_LOWER"):
            return axis
        free = (axis.size - 1) * axis.stride + axis.reach + axis.extra
        total = max(0, free - (axis.size * axis.stride if wanted is None else wanted))
        small, large = total // 2, total - total // 2
        before, after = (small, large) if auto == "SAME_UPPER" else (large, small)
        extra = axis.extra if wanted is None else axis.extra + max(0, wanted - free)
        return replace(axis, before=before, after=after, extra=extra)
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        return axis
    total = max(0, (-(-axis.size // axis.stride) - 1) * axis.stride + axis.reach - axis.size)
    small, large = total // 2, total - total // 2
    before, after = (small, large) if auto == "SAME_UPPER" else (large, small)
    return replace(axis, before=before, after=after)


def _list(call: Call, name: str, count: int, default: int) -> list[int]:
    values = integers(call, name)
    if values is None:
        return [default] * count
    if len(values) != count:
        raise Refused(f"{call.kernel} must have {count} numbers as {name}, not {values!r}")
    return values
