"""From a tile of a layer's output to the input it needs: the same rule for rows and for columns.

An axis is followed backwards from the output::

    output  --max pooling-->  convolution  --kernel, stride, dilation-->  image with its padding

so that a tile of whole pooling windows knows which rows (columns) to compute, and those which to load.
"""

from dataclasses import dataclass

from tilewright.compiler.network.layers import Layer


@dataclass(frozen=True, slots=True)
class Slice:
    """One axis of a tile.

    Attributes
    ----------
    out : range
        Of the layer's output.
    conv : range
        Of the sums that are computed; more than ``out`` if a max pooling follows, and overlapping then.
    before, after : int
        Padding rows (columns) stored before and after those of the image.
    image : range
        Of the input; its step is above 1 where rows (columns) between are never read.
    window_before : int
        Padding before the first pooling window, as ``pool.window`` wants it.
    """

    out: range
    conv: range
    before: int
    image: range
    after: int
    window_before: int

    @property
    def stored(self) -> int:
        """Rows (columns) that lie in the activation buffer."""
        return self.before + len(self.image) + self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Sizes and steps of a layer along its height or its width."""

    image: int
    conv: int
    out: int
    kernel: int
    stride: int
    dilation: int
    pad: int
    window: int
    window_stride: int
    window_pad: int

    @property
    def skips(self) -> bool:
        """Whether only every ``stride``-th row (column) of the image is read, and so loaded."""
        return self.kernel == 1 and self.stride > 1 and self.pad == 0 and (self.conv - 1) * self.stride < self.image

    @property
    def stored_stride(self) -> int:
        """Stored rows (columns) from one output to the next."""
        return 1 if self.skips else self.stride

    def cut(self, start: int, stop: int) -> Slice:
        """Return the slice whose outputs are ``start`` .. ``stop`` - 1."""
        first = max(0, start * self.window_stride - self.window_pad)
        end = min(self.conv, (stop - 1) * self.window_stride - self.window_pad + self.window)
        window_before = first + self.window_pad - start * self.window_stride
        low = first * self.stride - self.pad
        high = (end - 1) * self.stride - self.pad + (self.kernel - 1) * self.dilation + 1
        image = range(min(max(low, 0), self.image), min(max(high, 0), self.image))
        if self.skips:
            image = image[::self.stride]
            before = after = 0
        elif image:
            before, after = image.start - low, high - image.stop
        else:
            before, after = high - low, 0
        return Slice(range(start, stop), range(first, end), before, image, after, window_before)

    def cuts(self, size: int, first: int = 0) -> tuple[Slice, ...]:
        """Return the slices of at most ``size`` outputs that make up the axis, behind one of ``first`` if given."""
        starts = [*([0] if first else []), *range(first, self.out, size)]
        return tuple(self.cut(start, stop) for start, stop in zip(starts, [*starts[1:], self.out], strict=True))


def axes(layer: Layer) -> tuple[Axis, Axis]:
    """Return the axes of height and width."""
    pool = layer.pool
    window, stride, pads = (pool.kernel, pool.strides, pool.pads) if pool else ((1, 1), (1, 1), (0, 0, 0, 0))
    height, width = (
        Axis(image=layer.in_shape[1 + i], conv=layer.conv_shape[1 + i], out=layer.out_shape[1 + i],
             kernel=layer.kernel[i], stride=layer.strides[i], dilation=layer.dilations[i], pad=layer.pads[i],
             window=window[i], window_stride=stride[i], window_pad=pads[i])
        for i in range(2))
    return height, width


@dataclass(frozen=True, slots=True)
class Tile:
    """A block of a layer's output, all its channels."""

    rows: Slice
    columns: Slice
