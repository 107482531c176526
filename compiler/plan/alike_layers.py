"""Plans of layers that differ only in names and values: they are planned once, and the plan is reused."""

from collections.abc import Callable, Hashable
from dataclasses import fields, replace

import numpy as np

from tilewright.compiler.network.layers import Layer, Requantisation
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.algorithms import alike, forms
from tilewright.compiler.plan.planner import LayerPlan, plan_chained, plan_layer
from tilewright.compiler.plan.problem import OnChip
from tilewright.isa.machine import Machine
from tilewright.isa.rows.row_norm import RowNorm

__all__ = ["MOST_PLANS", "geometry", "plan_chained_once", "plan_once"]

MOST_PLANS = 1024
"""Plans that are remembered; when there are more, all are forgotten."""

_VALUES = {"name", "onnx_nodes", "input", "output", "also", "exact", "weights", "bias", "requantisation", "residual",
           "factor", "table", "rows", "pad_value", "words"}
"""Fields of a layer on which no plan depends, but for whether they are there and alike for all channels."""

_GEOMETRY = tuple(field.name for field in fields(Layer) if field.name not in _VALUES)

_NOTHING = np.zeros(0, np.int32)
_NO_SCALE = Requantisation(scale=np.zeros(0, np.float32), zero_point=0)

_plans: dict[Hashable, tuple[LayerPlan, Hashable] | None] = {}
"""Plans without the layer's values, and the geometry of their forms, by all that a plan depends on."""


def geometry(layer: Layer) -> Hashable:
    """Return the properties that layers with the same plan have in common."""
    return (*(getattr(layer, name) for name in _GEOMETRY), layer.weights is None, layer.residual is None,
            layer.factor is None, layer.factor is not None and bool(layer.factor.parameters), layer.table is None,
            layer.rows is None, len(layer.rows.gains) if isinstance(layer.rows, RowNorm) else 0,
            len(layer.words.stored(layer.input)), layer.words.inputs, layer.words.outputs, alike(layer),
            layer.weights.tobytes() if layer.weights is not None and len(layer.weight_parts) > 1 else b"")


def plan_once(layer: Layer, machine: Machine, options: Options, layouts: LayerLayouts) -> LayerPlan:
    """Return what `compiler.plan.planner.plan_layer` does; raise what it raises."""
    plan = _remembered(layer, options, (machine, layouts), lambda: plan_layer(layer, machine, options, layouts))
    assert plan is not None
    return plan


def plan_chained_once(layer: Layer, machine: Machine, options: Options, layouts: LayerLayouts, chip: OnChip,
                      unit: int) -> LayerPlan | None:
    """Return what `compiler.plan.planner.plan_chained` does."""
    return _remembered(layer, options, (machine, layouts, chip, unit),
                       lambda: plan_chained(layer, machine, options, layouts, chip, unit))


def _remembered(layer: Layer, options: Options, others: Hashable,
                make: Callable[[], LayerPlan | None]) -> LayerPlan | None:
    key = geometry(layer), options, others
    if key in _plans:
        known = _plans[key]
        if known is None:
            return None
        plan, wanted = known
        return replace(plan, layer=layer, work=next(work for work, _ in forms(layer, options)
                                                    if geometry(work) == wanted))
    if len(_plans) >= MOST_PLANS:
        _plans.clear()
    made = make()
    _plans[key] = None if made is None else (
        replace(made, layer=_bare(layer), work=_bare(made.work)), geometry(made.work))
    return made


def _bare(layer: Layer) -> Layer:
    """Return a layer without its values, which would be kept alive."""
    return replace(layer, weights=None, bias=_NOTHING, requantisation=_NO_SCALE, table=None)
