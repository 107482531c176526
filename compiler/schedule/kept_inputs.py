"""Where the inputs of chained layers lie in the activation buffer.

An input is there from when the first of the layers that compute it begins to when the layer that reads it ends; then
another may lie at its place. Padding is different: the loads write it before anything else of the chain, as they know
of no result that the array has not waited for. So what has padding keeps its place from the beginning of the chain on,
and shares it only with inputs of the same form that have the same padding.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tilewright.compiler.plan.footprint import blocked_row_step, input_bytes, linear_row_step, part_bytes, ring_space
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.schedule.on_chip import PLACES, block_space, border, kept_input, whole_of
from tilewright.isa.machine import TILE_BYTES, Machine

__all__ = ["KeptInputs", "head_bytes", "kept_bytes", "lay_out"]


@dataclass(frozen=True, slots=True)
class KeptInputs:
    """Places of the inputs of a chain's layers, all but the first.

    Attributes
    ----------
    offsets : tuple of int
        First byte of each input.
    size : int
        Bytes of all together.
    bare : tuple of int
        Layers, counted from the chain's first, whose padding is to be written: of those that share it, the first.
    """

    offsets: tuple[int, ...]
    size: int
    bare: tuple[int, ...]


@dataclass(slots=True)
class _Place:
    """A place and the layers by which it is taken, from ``born`` to ``dead``; ``padding`` tells what it can share."""

    start: int
    stop: int
    born: int
    dead: int
    padding: Hashable

    def rivals(self, born: int, dead: int) -> bool:
        """Tell whether what is there from ``born`` to ``dead`` needs another place."""
        return born <= self.dead and self.born <= dead


def lay_out(plans: Sequence[LayerPlan], machine: Machine) -> KeptInputs:
    """Return the places of the inputs of a chain's layers; of layers that take turns all are there at once."""
    together = any(plan.bands is not None or plan.channels_at_once for plan in plans) or not _branches(plans)
    places: list[_Place] = []
    offsets, bare = [], []
    for index, plan in enumerate(plans[1:], 1):
        size = ring_space(kept_bytes(plan), machine.activation_bytes, TILE_BYTES)
        writers = [place for place, each in enumerate(plans[:index])
                   if any(place + feed.ahead == index for feed in each.chip.feeds)]
        born, dead = (0, len(plans)) if together else (min(writers), index)
        padding = None if together else _padding_of(plan)
        shared = next((place for place in places if padding is not None and place.padding == padding
                       and place.dead < born), None)
        if shared is not None:
            shared.dead = dead
            offsets.append(shared.start)
            continue
        born = 0 if padding is not None else born
        start = _free(size, [place for place in places if place.rivals(born, dead) or place.padding is not None])
        places.append(_Place(start, start + size, born, dead, padding))
        offsets.append(start)
        bare.append(index)
    return KeptInputs(tuple(offsets), max((place.stop for place in places), default=0), tuple(bare))


def _branches(plans: Sequence[LayerPlan]) -> bool:
    """Tell whether a result has several readers on chip, or an input several writers.

    Layers one behind the other have a place each. Places that are free again would let VGG16 and ResNet18 at 32x32 move
    up to 5 % less and take 0.1 % less time on base; that waits until all their figures are measured anew.
    """
    readers = [index + feed.ahead for index, plan in enumerate(plans) for feed in plan.chip.feeds]
    return len(set(readers)) < len(readers) or any(len(plan.chip.feeds) > 1 for plan in plans)


def _free(size: int, taken: Sequence[_Place]) -> int:
    """Return the lowest start of ``size`` bytes that overlap none of ``taken``."""
    start = 0
    for place in sorted(taken, key=lambda place: place.start):
        if start + size <= place.start:
            break
        start = max(start, place.stop)
    return start


def _padding_of(plan: LayerPlan) -> Hashable | None:
    """Return what inputs have in common that can share their padding; None without padding."""
    layer, nest, padding = plan.layer, plan.nest, tuple(border(whole_of(plan)))
    if not padding:
        return None
    return padding, layer.in_shape, layer.pad_value, layer.dilations, nest.winograd, nest.paired, kept_bytes(plan)


def kept_bytes(plan: LayerPlan) -> int:
    """Return the bytes of the activation buffer that an input takes: whole, its ring of rows, or blocks of channels."""
    if plan.channels_at_once:
        return PLACES * block_space(plan)
    whole, size = whole_of(plan), kept_input(plan)
    if plan.bands is None or plan.bands.ring is None:
        return size
    ring = plan.bands.ring
    if plan.nest.winograd:
        step = blocked_row_step(whole, plan.layer.in_shape[0])
        return size - (size // step - ring.units - ring.margin) * step
    return size - (whole.rows.stored - ring.height) * linear_row_step(whole, plan.layer, plan.nest)


def head_bytes(plan: LayerPlan, machine: Machine) -> int:
    """Return the bytes of the activation buffer for two input tiles of ``plan``, or for its only one."""
    tile = plan.largest
    size = part_bytes(plan.blocks[0], tile) if plan.splits_input else input_bytes(tile, plan.layer, plan.nest)
    if plan.stays:
        size = kept_bytes(plan)
    several = plan.splits_input or (len(plan.tiles) > 1 and not plan.stays)
    return (2 if several else 1) * ring_space(size, machine.activation_bytes, TILE_BYTES)
