"""Depthwise layers that do not have the patches of four channels at once, and why: the layer, or the machine."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby

import numpy as np

from tilewright.compiler.network.layers import Layer
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.isa.machine import Machine

__all__ = ["SinglePatches", "WhySingle", "lacking_units", "single_patches"]

_UNITS = ("channel_kernels", "four_patches")
"""Parameters that a machine needs for them."""

_LEAST_SHARE = 0.05
"""Layers that take a smaller part of the cycles are not worth a sentence."""


class WhySingle(Enum):
    """The cause why a depthwise layer has one patch at a time."""

    KERNEL = "their kernels are larger than 3x3"
    DILATED = "their kernels are dilated beyond 3x3"
    WORDS = "their values are words of 16 bits"
    WEIGHTS = "they have weights beyond int8"
    CHANNELS = "their channels are no multiple of {unit}, and what lies beside them keeps its own"
    PLAN = "conv is predicted faster, or their input does not fit the buffer"


@dataclass(frozen=True, slots=True)
class SinglePatches:
    """The names of such layers, the cause that they share, and the channels of which each would need a multiple."""

    why: WhySingle
    layers: tuple[str, ...]
    unit: int

    def __str__(self) -> str:
        return (f"depthwise layers without four patches at a time, because {self.why.value.format(unit=self.unit)}: "
                f"{', '.join(self.layers)}")


def single_patches(plans: Iterable[LayerPlan | CorePlan], machine: Machine) -> tuple[SinglePatches, ...]:
    """Return the layers of ``plans`` that have one patch at a time though ``machine`` takes four, by cause."""
    found = sorted(_single(plans, machine), key=lambda each: [*WhySingle].index(each[0]))
    return tuple(SinglePatches(why, tuple(name for _, name in each), machine.block_unit)
                 for why, each in groupby(found, lambda each: each[0]))


def lacking_units(plans: Iterable[LayerPlan | CorePlan], cycles: Mapping[str, int], machine: Machine) -> str:
    """Return what tells which units would give the depthwise layers of ``plans`` four patches at a time.

    Parameters
    ----------
    plans : iterable of LayerPlan or CorePlan
    cycles : mapping of str to int
        Predicted cycles of each layer by its name.
    machine : Machine
        What the plans are for.

    Returns
    -------
    str
        Empty if the machine has the units or cannot have them, or if such layers take less than 5 % of the cycles.
    """
    larger = replace(machine, channel_kernels=True, four_patches=True)
    if machine.takes_four_patches or not larger.takes_four_patches:
        return ""
    fitting = {plan.layer.name for plan in plans if isinstance(plan, LayerPlan) and _depthwise(plan.layer)
               and _why(plan.layer, larger) in (WhySingle.PLAN, WhySingle.CHANNELS)}
    share = sum(cycles.get(name, 0) for name in fitting) / max(sum(cycles.values()), 1)
    if share < _LEAST_SHARE:
        return ""
    units = ",".join(f"{unit}=true" for unit in _UNITS if not getattr(machine, unit))
    return (f"depthwise layers take {share:.0%} of the predicted cycles".replace("%", " %") +
            f", one patch at a time: the machine lacks the units for four, which {units} behind a comma of --machine "
            "adds")


def _single(plans: Iterable[LayerPlan | CorePlan], machine: Machine) -> Iterator[tuple[WhySingle, str]]:
    for plan in plans if machine.takes_four_patches else ():
        if isinstance(plan, LayerPlan) and _depthwise(plan.layer) and not plan.nest.four_patches:
            yield _why(plan.layer, machine), plan.layer.name


def _depthwise(layer: Layer) -> bool:
    """Tell whether a layer sums up a window of each channel by itself, with constant weights."""
    return (layer.kind == "conv" and layer.weights is not None and layer.kernel != (1, 1)
            and layer.groups == layer.in_shape[0] == layer.conv_shape[0] > 1)


def _why(layer: Layer, machine: Machine) -> WhySingle:
    assert layer.weights is not None
    causes = {WhySingle.KERNEL: max(layer.kernel) > 3, WhySingle.DILATED: max(layer.span) > 3,
              WhySingle.WORDS: layer.words.inputs > 1, WhySingle.WEIGHTS: layer.weights.dtype != np.int8,
              WhySingle.CHANNELS: layer.in_shape[0] % machine.block_unit > 0, WhySingle.PLAN: True}
    return next(why for why, there in causes.items() if there)
