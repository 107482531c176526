"""Layers whose weights an earlier layer has loaded, and which stay on the chip: by their plans they load none.

The steps of a recurrence read the same weights. Which of them stay is decided when the loads are put in order
(`compiler.schedule.rings.with_lasting`), by the blocks of the plans; here by whole layers, so that the plans are those
of weights that are there. Planned otherwise, a layer is cut into small blocks that hide loads which never come.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from tilewright.compiler.network.layers import Layer, Network
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.compiler.plan.footprint import block_words, parameter_channels, parameter_unit, usable_words
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.isa.machine import Machine

__all__ = ["with_lasting_weights"]

_WORDS = 8
"""Words to whose multiples weights begin in their memory."""


def with_lasting_weights(network: Network, plans: Sequence[LayerPlan | CorePlan], machine: Machine) -> Network:
    """Return ``network`` with those layers marked whose weights and parameters stay on the chip, by ``plans``."""
    alike: dict[Hashable, list[int]] = {}
    for index, plan in enumerate(plans):
        if isinstance(plan, LayerPlan) and plan.layer.kind == "conv" and plan.layer.factor is None:
            alike.setdefault(_content(plan.layer), []).append(index)
    groups = [group for group in alike.values() if len(group) > 1]
    sizes = {index: _sizes(plan, machine) for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)}
    rooms = usable_words(machine), machine.parameter_channels
    kept: set[int] = set()
    for group in sorted(groups, key=lambda group: (1 - len(group)) * sizes[group[0]][0][0]):
        inside = kept | set(group)
        taken = [group[0], *(each[0] for each in groups if each[0] in kept)]
        if all(room - sum(sizes[index][kind][0] for index in taken) >= 2 * max(
                (largest for index, each in sizes.items() if index not in inside for _, largest in (each[kind],)),
                default=0) for kind, room in enumerate(rooms)):
            kept = inside
    if not kept:
        return network
    return replace(network, layers=tuple(
        replace(layer, early_weights=True) if isinstance(layer, Layer) and index in kept else layer
        for index, layer in enumerate(network.layers)))


def _content(layer: Layer) -> Hashable:
    """Return what is alike of layers that load the same."""
    assert layer.weights is not None
    scales = layer.requantisation.scale
    return (layer.weights.shape, layer.weights.tobytes(), layer.bias.tobytes(), scales.tobytes(), layer.in_shape,
            layer.conv_shape, layer.kernel, layer.strides, layer.groups, layer.residual is None)


def _sizes(plan: LayerPlan, machine: Machine) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the words of weights, and the channels of parameters, of all blocks of a plan and of its largest."""
    words = [_up(block_words(block, plan.nest, machine), _WORDS) for block in plan.blocks]
    channels = [_up(parameter_channels(block, plan.nest, machine), parameter_unit(machine)) for block in plan.blocks]
    return (sum(words), max(words)), (sum(channels), max(channels))


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
