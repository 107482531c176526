"""An input of ``conv23`` that stays in the activation buffer whole: loaded strip by strip, each row once.

Tiles of an input that is loaded tile by tile share two rows with the next one, which then cross the bus twice. Where
the whole input fits, a strip of whole block rows (four rows each) is loaded as soon as a tile needs it; the array
reads other block rows meanwhile.
"""

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.plan.footprint import BLOCK_ROWS, input_bytes
from tilewright.compiler.plan.tiles import Slice, Tile, axes
from tilewright.compiler.plan.walk import Walk
from tilewright.isa.machine import Machine


def whole_tile(layer: Layer, columns: Slice) -> Tile:
    """Return the tile of all rows of ``columns``."""
    height, _ = axes(layer)
    return Tile(height.cut(0, height.out), columns)


def can_stay(tiles: tuple[Tile, ...], layer: Layer, walk: Walk, machine: Machine) -> bool:
    """Tell whether the input of ``tiles``, all those of ``layer``, can be loaded as one, strip by strip."""
    whole = whole_tile(layer, tiles[0].columns)
    return (walk.algorithm == "conv23" and walk.overread == 0 and len(tiles) > 1
            and len(whole.columns.out) == layer.out_shape[2]
            and input_bytes(whole, layer, walk) <= machine.activation_bytes
            and all(tile.rows.conv.start % 2 == 0 for tile in tiles))


def block_rows(tile: Tile) -> range:
    """Return the block rows of the whole input that the patches of ``tile`` touch."""
    first = tile.rows.conv.start
    stop = first + 2 * -(-len(tile.rows.conv) // 2) + 2
    return range(first // BLOCK_ROWS, -(-stop // BLOCK_ROWS))


def strip(layer: Layer, columns: Slice, rows: range) -> Tile:
    """Return the block rows ``rows`` of the whole input as what is to be loaded, padding included."""
    whole = whole_tile(layer, columns).rows
    first, stop = BLOCK_ROWS * rows.start, min(BLOCK_ROWS * rows.stop, whole.stored)
    before = max(0, min(stop, whole.before) - first)
    image = whole.image[max(first - whole.before, 0):max(stop - whole.before, 0)]
    after = max(0, stop - first) - before - len(image)
    return Tile(Slice(range(0), range(0), before, image, after, 0), columns)
