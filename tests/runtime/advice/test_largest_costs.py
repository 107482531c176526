"""Costs by cause count each cycle of the layers once, and savings are those of the predicted runs."""

from dataclasses import replace

import pytest

from tilewright.compiler.network.options import BEST
from tilewright.runtime.advice.largest_costs import CORE, largest_costs
from tilewright.runtime.advice.machine_changes import LEAST_SHARE, OUTPUTS_ONLY, best_change, tried_changes
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.runtime.predicted_run import predict_model
from tilewright.tools.progress import Silence


@pytest.fixture(scope="module")
def source():
    return find_model("lenet5", Silence())


@pytest.fixture(scope="module")
def report(source):
    return predict_model(source, design_of("base"), BEST, Silence()).report


def test_costs_are_the_cycles_of_all_layers_the_largest_first(report):
    costs = largest_costs(report)
    assert sum(cost.cycles for cost in costs) == sum(layer.cycles for layer in report.layers)
    assert [cost.cycles for cost in costs] == sorted((cost.cycles for cost in costs), reverse=True)
    for cost in costs:
        assert sum(cycles for _, cycles in cost.layers) == cost.cycles
        assert cost.share == pytest.approx(cost.cycles / report.cycles)


def test_layers_of_the_host_core_are_one_cost_by_operator_and_reason(report):
    moved = [replace(layer, algorithm=CORE, operator="Softmax", reason=f"its input is {place // 2}")
             for place, layer in enumerate(report.layers[:3])]
    found = largest_costs(replace(report, layers=(*moved, *report.layers[3:])))
    core = [cost for cost in found if cost.cause == CORE]
    assert sorted(len(cost.layers) for cost in core) == [1, 2]
    assert sum(cost.cycles for cost in core) == sum(layer.cycles for layer in moved)
    assert all(cost.core is not None and cost.core.way_out for cost in core)
    assert sum(cost.cycles for cost in found) == sum(layer.cycles for layer in report.layers)


def test_a_change_is_worth_what_the_prediction_with_it_says(source, report):
    tried = tried_changes(source, design_of("base"), BEST, report, Silence())
    assert tried
    network = PredictedNetwork(source, BEST)
    for each in tried:
        network.outputs_only = each.change.key == OUTPUTS_ONLY
        text = "base" if network.outputs_only else f"base,{each.change.key}={each.change.value}"
        assert each.cycles == network.predict(design_of(text)).cycles
        assert each.saved == report.cycles - each.cycles
    for cost in largest_costs(report):
        best = best_change(cost, tried)
        assert best is not None or cost.share < LEAST_SHARE


def test_nothing_is_tried_where_it_would_take_minutes(source, report):
    assert tried_changes(source, design_of("base"), BEST, report, Silence(), commands=10**7) == ()
