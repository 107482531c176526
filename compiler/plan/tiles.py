"""From a tile of a layer's output to the input it needs: the same rule for rows and for columns.

An axis is followed backwards from the output::

    output  --max pooling-->  convolution  --kernel, stride, dilation-->  image with its padding

so that a tile of whole pooling windows knows which rows (columns) to compute, and those which to load.

Tiles of an input that is loaded tile by tile share two rows with the next one, which then cross the bus twice. Where
the whole input of ``conv23`` fits the activation buffer, it is loaded strip by strip, each row once: a strip of whole
block rows (four rows each) as soon as a tile needs it, while the array reads other block rows.
"""

from dataclasses import dataclass, replace

from tilewright.compiler.network.layers import Layer

__all__ = ["BLOCK_SIDE", "LayerAxis", "Tile", "TileExtent", "axes", "block_rows", "strip", "whole_tile"]

BLOCK_SIDE = 4
"""Rows, and columns, of a block of the blocked layout."""


@dataclass(frozen=True, slots=True)
class TileExtent:
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
class LayerAxis:
    """Sizes and steps of a layer along its height or its width.

    Of several ``images``, ``image``, ``conv`` and ``out`` are those of one; a slice is of one of them, and counts from
    the first of all.
    """

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
    images: int = 1

    @property
    def skips(self) -> bool:
        """Whether only every ``stride``-th row (column) of the image is read, and so loaded."""
        return self.kernel == 1 and self.stride > 1 and self.pad == 0 and (self.conv - 1) * self.stride < self.image

    @property
    def stored_stride(self) -> int:
        """Stored rows (columns) from one output to the next."""
        return 1 if self.skips else self.stride

    def cut(self, start: int, stop: int) -> TileExtent:
        """Return the slice with outputs ``start`` .. ``stop`` - 1, all of one image."""
        index = start // self.out
        found = self._cut(start - index * self.out, stop - index * self.out)
        if not index:
            return found
        return replace(found, out=range(start, stop), conv=_moved(found.conv, index * self.conv),
                       image=_moved(found.image, index * self.image))

    def _cut(self, start: int, stop: int) -> TileExtent:
        """Return the slice of the first image."""
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
        return TileExtent(range(start, stop), range(first, end), before, image, after, window_before)

    def cuts(self, size: int, first: int = 0) -> tuple[TileExtent, ...]:
        """Return slices of at most ``size`` outputs that cover the axis, after one of ``first`` if given."""
        starts = [*([0] if first else []), *range(first, self.out, size)]
        return tuple(self.cut(base + start, base + stop) for base in range(0, self.images * self.out, self.out)
                     for start, stop in zip(starts, [*starts[1:], self.out], strict=True))


def _moved(extent: range, distance: int) -> range:
    return range(extent.start + distance, extent.stop + distance, extent.step)


def axes(layer: Layer) -> tuple[LayerAxis, LayerAxis]:
    """Return the axes of height and width."""
    pool = layer.pool
    window, stride, pads = (pool.kernel, pool.strides, pool.pads) if pool else ((1, 1), (1, 1), (0, 0, 0, 0))
    images = layer.images, 1
    height, width = (
        LayerAxis(image=layer.in_shape[1 + i] // images[i], conv=layer.conv_shape[1 + i] // images[i],
                  out=layer.out_shape[1 + i] // images[i], images=images[i],
                  kernel=layer.kernel[i], stride=layer.strides[i], dilation=layer.dilations[i], pad=layer.pads[i],
                  window=window[i], window_stride=stride[i], window_pad=pads[i])
        for i in range(2))
    return height, width


@dataclass(frozen=True, slots=True)
class Tile:
    """A block of a layer's output, all its channels."""

    rows: TileExtent
    columns: TileExtent


def whole_tile(layer: Layer, columns: TileExtent) -> Tile:
    """Return the tile of all rows of ``columns``."""
    height, _ = axes(layer)
    return Tile(height.cut(0, height.out), columns)


def block_rows(tile: Tile) -> range:
    """Return the block rows of the whole input that the patches of ``tile`` touch."""
    first = tile.rows.conv.start
    stop = first + 2 * -(-len(tile.rows.conv) // 2) + 2
    return range(first // BLOCK_SIDE, -(-stop // BLOCK_SIDE))


def strip(layer: Layer, columns: TileExtent, rows: range) -> Tile:
    """Return the block rows ``rows`` of the whole input as a tile to load, padding included."""
    whole = whole_tile(layer, columns).rows
    first, stop = BLOCK_SIDE * rows.start, min(BLOCK_SIDE * rows.stop, whole.stored)
    before = max(0, min(stop, whole.before) - first)
    image = whole.image[max(first - whole.before, 0):max(stop - whole.before, 0)]
    after = max(0, stop - first) - before - len(image)
    return Tile(TileExtent(range(0), range(0), before, image, after, 0), columns)
