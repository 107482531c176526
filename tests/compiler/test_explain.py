"""Explanations say what the plan is, add up to it, and have the keys that users rely on."""

import json

import pytest

from tests.support.stacks import resnet, vgg
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.explain import explain, explain_layers
from tilewright.compiler.network.options import Options
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.planner import plan_layer
from tilewright.isa.machine import preset
from tilewright.models import builtin

KEYS = {"name", "onnx_nodes", "fused", "algorithm", "paired_rows", "tile", "block", "loop_order",
        "predicted_cycles", "predicted_bytes", "bound", "compute_cycles", "memory_cycles", "post_cycles",
        "roofline_cycles", "on_chip"}


def explained(network, machine="base", options=None):
    plans = [plan_layer(layer, preset(machine), options or Options()) for layer in network.layers]
    return plans, explain_layers(plans, preset(machine))


@pytest.mark.parametrize("machine", ["nano", "base", "large"])
@pytest.mark.parametrize("network", [vgg(32, ((16, 2), (64, 2)), (40, 10)), resnet(16, (8, 16, 24), (2, 1, 1))],
                         ids=lambda network: network.name)
def test_figures_are_those_of_the_plan(network, machine):
    for plan, each in zip(*explained(network, machine), strict=True):
        assert (each.tiles, each.blocks * each.kernel_parts) == (len(plan.tiles), len(plan.blocks))
        assert (each.predicted_cycles, each.predicted_bytes) == (plan.cost.cycles, plan.cost.bytes)
        assert each.roofline_cycles <= max(each.compute_cycles, each.memory_cycles) <= each.predicted_cycles
        busy = {"compute": each.compute_cycles, "memory": each.memory_cycles, "post-processing": each.post_cycles}
        assert busy[each.bound] == max(busy.values())


def test_json_has_the_keys_promised_and_is_json():
    compiled = compile_layers(compile_network(builtin("lenet5_accel")), preset("base"))
    shown = explain(compiled).to_json()
    assert set(shown) == {"model", "machine", "options", "predicted_cycles", "predicted_bytes", "roofline_cycles",
                          "memory_bytes", "layers"}
    assert shown["memory_bytes"] == compiled.memory_bytes
    assert shown["options"] == {"fuse_pool": True, "winograd": "auto", "reuse": True, "chain": True, "bands": True,
                                "narrow": True, "keep_weights": None, "batch": 1}
    assert json.loads(json.dumps(shown)) == shown
    for figure in ("predicted_cycles", "predicted_bytes", "roofline_cycles"):
        assert shown[figure] == sum(layer[figure] for layer in shown["layers"])
    for layer in shown["layers"]:
        assert set(layer) == KEYS
        assert set(layer["tile"]) == {"rows", "columns", "count"}
        assert set(layer["block"]) == {"channels", "count", "kernel_parts"}


def test_what_is_fused_is_named():
    _, layers = explained(compile_network(builtin("lenet5_accel")))
    assert any("max pool 2x2 / 2" in each.fused for each in layers)
    _, layers = explained(compile_network(builtin("lenet5_accel"), Options(fuse_pool=False)))
    assert not any(text.startswith("max pool") for each in layers for text in each.fused)
    _, layers = explained(resnet(16, (8,), (1,)))
    assert any(text.startswith("add ") for each in layers for text in each.fused)


def test_the_algorithm_follows_the_options():
    network = vgg(16, ((16, 2),), (10,))
    assert [each.algorithm for each in explained(network)[1]].count("conv23") >= 1
    assert {each.algorithm for each in explained(network, options=Options(winograd="never"))[1]} == {"conv"}
