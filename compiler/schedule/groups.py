"""Layers whose commands take turns: which they are, and what they need together.

They are computed by bands of rows (compiler/schedule/bands.py), or two of them by blocks of channels
(compiler/schedule/channel_blocks.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.compiler.plan.algorithms import LoopNest
from tilewright.compiler.plan.footprint import WeightBlock
from tilewright.compiler.plan.planner import LayerPlan

__all__ = ["bottoms", "by_blocks", "chained_to", "ends_bands", "home", "parts"]


def by_blocks(plans: Mapping[int, LayerPlan], layer: int) -> bool:
    """Tell whether layer ``layer`` hands its results over to the next one by blocks of channels."""
    return layer + 1 in plans and plans[layer + 1].channels_at_once > 0


def home(plans: Mapping[int, LayerPlan], layer: int) -> int:
    """Return the layer whose function has the commands of ``layer``: the first one of those that take turns."""
    plan = plans.get(layer)
    if plan is None:
        return layer
    return layer - (plan.bands.place if plan.bands is not None else plan.channels_at_once > 0)


def chained_to(plans: Mapping[int, LayerPlan] | Sequence[Any], head: int) -> list[int]:
    """Return the layers of the chain after layer ``head``: up to the last that finds results of one of them on chip."""
    last = index = head
    while index <= last:
        last = max([last, *(index + feed.ahead for feed in plans[index].chip.feeds)])
        index += 1
    return list(range(head + 1, last + 1))


def parts(plans: Mapping[int, LayerPlan], head: int) -> list[tuple[tuple[WeightBlock, ...], LoopNest]]:
    """Return blocks and nests of the layers that are computed band by band with ``head``, the first of them."""
    bands = plans[head].bands
    layers = range(head, head + (bands.layers if bands is not None else 1))
    return [(plans[index].blocks, plans[index].nest) for index in layers]


def ends_bands(plans: Mapping[int, LayerPlan], layer: int) -> bool:
    """Tell whether ``layer`` is the last one of those that are computed band by band."""
    bands = plans[layer].bands
    return bands is not None and bands.place == bands.layers - 1


def bottoms(plans: Mapping[int, LayerPlan], layer: int, tile: int) -> list[int]:
    """Return the layers whose rings of rows get the padding below the image before that input of ``layer``."""
    head = plans[layer].bands
    if head is None or head.place:
        return []
    rings = {index: plan.bands.ring for index in range(layer + 1, layer + head.layers)
             if (plan := plans[index]).bands is not None}
    return [index for index, ring in rings.items()
            if ring is not None and ring.padded >= 0 and tile == head.band(ring.padded).start]
