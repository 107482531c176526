"""Where the inputs of chained layers lie in the activation buffer.

An input is there from when the first of the layers that compute it begins to when the layer that reads it ends; then
another may lie at its place. Padding is different: the load writes it before anything else of the chain, since it waits
for no result that the array has not waited for. So an input with padding keeps its place from the beginning of the
chain on, and shares it only with inputs of the same form and the same padding.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tilewright.compiler.plan.footprint import blocked_row_step, input_bytes, linear_row_step, part_bytes, ring_space
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.schedule.on_chip import PLACES, block_space, border, kept_input, whole_of
from tilewright.isa.machine import Machine

__all__ = ["KeptInput", "KeptInputs", "branches", "head_bytes", "kept_bytes", "lay_out"]


@dataclass(frozen=True, slots=True)
class KeptInput:
    """The input of a layer of a chain: bytes [start, stop) of what the chain takes of the buffer.

    ``fresh``: its padding, if any, is still to be written, as no layer before shares its place. It is ``late`` if
    another input may lie there until its first writer begins.
    """

    start: int
    stop: int
    fresh: bool
    late: bool


@dataclass(frozen=True, slots=True)
class KeptInputs:
    """Places of the inputs of a chain: of all layers but the first, and of what the first one loads.

    Attributes
    ----------
    inputs : tuple of KeptInput
        One for each layer but the first.
    head : int
        First byte of the room for the tiles of the first layer.
    size : int
        Bytes of all together.
    """

    inputs: tuple[KeptInput, ...]
    head: int
    size: int


@dataclass(slots=True)
class _Room:
    """A place of so many bytes that is taken from layer ``born`` to layer ``dead``.

    ``padding`` tells which others can share it; one with padding is taken for ever.
    """

    layers: list[int]
    size: int
    born: int
    dead: int
    padding: Hashable | None
    start: int = 0

    def meets(self, other: "_Room") -> bool:
        """Tell whether both are taken at the same time."""
        return self.born <= other.dead and other.born <= self.dead


def lay_out(plans: Sequence[LayerPlan], machine: Machine) -> KeptInputs:
    """Return the places of the inputs of a chain's layers.

    Layers that take turns need all of them at once.
    """
    head = _Room([0], head_bytes(plans[0], machine), 0, 0, None)
    aside = any(plan.bands is not None or plan.channels_at_once for plan in plans)
    places = _aside(plans, machine) if aside else _by_lives(plans, machine)
    # What has padding comes first, then the largest.
    order = places if aside else sorted(places, key=lambda place: (place.padding is None, -place.size))
    for index, place in enumerate((*order, head)):
        place.start = _free(place.size, [other for other in order[:index] if other.meets(place)])
    found = {layer: KeptInput(place.start, place.start + kept_bytes(plans[layer]), layer == place.layers[0],
                              place.born > 0)
             for place in places for layer in place.layers}
    return KeptInputs(tuple(found[layer] for layer in range(1, len(plans))), head.start,
                      max(place.start + place.size for place in (*places, head)))


def _aside(plans: Sequence[LayerPlan], machine: Machine) -> list[_Room]:
    """Return a place for each input that it keeps from the beginning to the end."""
    return [_Room([index], _space(plan, machine), 0, len(plans), None) for index, plan in enumerate(plans[1:], 1)]


def _by_lives(plans: Sequence[LayerPlan], machine: Machine) -> list[_Room]:
    """Return places of inputs, each for as long as it is needed; of those that share padding one."""
    found: list[_Room] = []
    for index, plan in enumerate(plans[1:], 1):
        padding = _padding_of(plan)
        born = min(place for place, each in enumerate(plans[:index])
                   if any(place + feed.ahead == index for feed in each.chip.feeds))
        shared = next((place for place in found if padding is not None and place.padding == padding
                       and max(place.layers) < born), None)
        if shared is not None:
            shared.layers.append(index)
        elif padding is not None:
            found.append(_Room([index], _space(plan, machine), 0, len(plans), padding))
        else:
            found.append(_Room([index], _space(plan, machine), born, index, None))
    return found


def _space(plan: LayerPlan, machine: Machine) -> int:
    return ring_space(kept_bytes(plan), machine.activation_bytes, machine.input_unit)


def branches(plans: Sequence[LayerPlan]) -> bool:
    """Tell whether a result of a chain has several readers in it, or an input several writers."""
    readers = [index + feed.ahead for index, plan in enumerate(plans) for feed in plan.chip.feeds]
    return len(set(readers)) < len(readers) or any(len(plan.chip.feeds) > 1 for plan in plans)


def _free(size: int, taken: Sequence[_Room]) -> int:
    """Return the lowest start of ``size`` bytes that overlap none of ``taken``."""
    start = 0
    for place in sorted(taken, key=lambda place: place.start):
        if start + size <= place.start:
            break
        start = max(start, place.start + place.size)
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
    size = part_bytes(plan.blocks[0], tile, plan.layer, plan.nest) if plan.splits_input \
        else input_bytes(tile, plan.layer, plan.nest)
    if plan.stays:
        size = kept_bytes(plan)
    several = plan.splits_input or (len(plan.tiles) > 1 and not plan.stays)
    return (2 if several else 1) * ring_space(size, machine.activation_bytes, machine.input_unit)
