"""Layers whose weights an earlier layer has loaded, and which stay on the chip: by their plans they load none.

The steps of a recurrence read the same weights. Which of them stay is decided when the loads are put in order
(`compiler.schedule.rings.with_lasting`), by the blocks of the plans; here by whole layers, so that the plans are those
of weights that are there. Planned otherwise, a layer is cut into small blocks that hide loads which never come.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace

from tilewright.compiler.network.layers import Layer, Network
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.compiler.plan.footprint import block_words, parameter_channels, parameter_unit, usable_words
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.isa.machine import Machine

__all__ = ["all_fit", "with_all_weights_kept", "with_lasting_weights"]

_WORDS = 8
"""Words to whose multiples weights begin in their memory."""


def with_lasting_weights(network: Network, plans: Sequence[LayerPlan | CorePlan], machine: Machine, *,
                         between_calls: bool = False) -> Network:
    """Return ``network`` with those layers marked whose weights and parameters stay on the chip, by ``plans``.

    With ``between_calls`` they stay from call to call, those of single layers too.
    """
    groups = _groups(plans, between_calls=between_calls)
    sizes = {index: _sizes(plan, machine) for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)}
    rooms = usable_words(machine), machine.parameter_channels
    kept: set[int] = set()
    saved = 0 if between_calls else 1
    for group in sorted(groups, key=lambda group: (saved - len(group)) * sizes[group[0]][0][0]):
        inside = kept | set(group)
        if _fit([group, *(each for each in groups if each[0] in kept)], inside, sizes, rooms):
            kept = inside
    return _marked(network, kept) if kept else network


def with_all_weights_kept(network: Network) -> Network:
    """Return ``network`` with all layers marked as finding their weights on the chip, where these are constants."""
    return _marked(network, {index for index, layer in enumerate(network.layers)
                             if isinstance(layer, Layer) and layer.factor is None})


def all_fit(plans: Sequence[LayerPlan | CorePlan], machine: Machine) -> bool:
    """Tell whether constant weights and parameters of all ``plans`` have room on the chip, beside two others."""
    groups = _groups(plans, between_calls=True)
    sizes = {index: _sizes(plan, machine) for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)}
    return _fit(groups, {index for group in groups for index in group}, sizes,
                (usable_words(machine), machine.parameter_channels))


_Sizes = Mapping[int, tuple[tuple[int, int], tuple[int, int]]]


def _marked(network: Network, kept: Collection[int]) -> Network:
    return replace(network, layers=tuple(
        replace(layer, early_weights=True) if isinstance(layer, Layer) and layer.kind == "conv" and index in kept
        else layer for index, layer in enumerate(network.layers)))


def _groups(plans: Sequence[LayerPlan | CorePlan], *, between_calls: bool) -> list[list[int]]:
    """Return the layers that load alike: several, or with ``between_calls`` single ones too."""
    alike: dict[Hashable, list[int]] = {}
    for index, plan in enumerate(plans):
        if isinstance(plan, LayerPlan) and plan.layer.factor is None and (between_calls or plan.layer.kind == "conv"):
            alike.setdefault(index if plan.layer.weights is None else _content(plan.layer), []).append(index)
    return [group for group in alike.values() if between_calls or len(group) > 1]


def _fit(groups: Sequence[Sequence[int]], inside: Collection[int], sizes: _Sizes, rooms: tuple[int, int]) -> bool:
    """Tell whether each of ``groups`` has room once, beside two of the largest blocks that are not ``inside``."""
    return all(room - sum(sizes[group[0]][kind][0] for group in groups) >= 2 * max(
        (each[kind][1] for index, each in sizes.items() if index not in inside), default=0)
        for kind, room in enumerate(rooms))


def _content(layer: Layer) -> Hashable:
    """Return what is alike of layers that load the same."""
    assert layer.weights is not None
    scales = layer.requantisation.scale
    return (layer.weights.shape, layer.weights.tobytes(), layer.bias.tobytes(), scales.tobytes(), layer.in_shape,
            layer.conv_shape, layer.kernel, layer.strides, layer.groups, layer.residual is None)


def _sizes(plan: LayerPlan, machine: Machine) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the words of weights, and the channels of parameters, of all blocks of a plan and of its largest.

    A layer whose weights stay is planned anew, in fewer blocks, so all of them are rounded up together.
    """
    words = [block_words(block, plan.nest, machine) for block in plan.blocks]
    channels = [parameter_channels(block, plan.nest, machine) for block in plan.blocks]
    unit = parameter_unit(machine)
    return (_up(sum(words), _WORDS), _up(max(words), _WORDS)), (_up(sum(channels), unit), _up(max(channels), unit))


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
