"""Another shape over the same bytes: the place of an image in memory when its elements are counted differently.

Both shapes count elements in the order in which they lie: row by row, in a row pixel by pixel, the channels of a pixel
one after the other. Of a tensor without gaps every other shape is possible; of one with gaps those whose rows, pixels
and runs of channels meet no gap in their middle.
"""

from tilewright.compiler.network.layers import Place, Shape

__all__ = ["reshaped_place", "whole_place"]


def whole_place(name: str, shape: Shape) -> Place:
    """Return the place of a tensor of ``shape`` (channels, height, width) that is all of ``name``, without gaps."""
    channels, _, width = shape
    return Place(parent=name, offset=0, row_step=width * channels, pixel_step=channels)


def reshaped_place(place: Place, shape: Shape, new: Shape) -> Place | None:
    """Return where the elements of a tensor of ``shape`` at ``place`` lie as one of the shape ``new``.

    None if no steps from row to row and from pixel to pixel tell it.
    """
    if shape == new:
        return place
    channels, height, width = shape
    runs: list[tuple[int, int]] = []
    for size, step in ((height, place.row_step), (width, place.pixel_step), (channels, 1)):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * step:
            runs[-1] = runs[-1][0] * size, step
        else:
            runs.append((size, step))
    run, pixel_step, row_step = (_taken(runs, size) for size in (new[0], new[2], new[1]))
    if run is None or pixel_step is None or row_step is None or (new[0] > 1 and run != 1):
        return None
    if new[2] == 1:
        pixel_step = new[0]
    if new[1] == 1:
        row_step = new[2] * pixel_step
    return Place(parent=place.parent, offset=place.offset, row_step=row_step, pixel_step=pixel_step)


def _taken(runs: list[tuple[int, int]], size: int) -> int | None:
    """Take ``size`` elements from the end of ``runs`` (count, step), and return their step; None if there are none."""
    if size == 1:
        return 0
    if not runs or runs[-1][0] % size:
        return None
    count, step = runs.pop()
    if count > size:
        runs.append((count // size, step * size))
    return step
