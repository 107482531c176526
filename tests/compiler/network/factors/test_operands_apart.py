"""Operands of products of vectors are computed apart, and their weights come before what the product waits for."""

import numpy as np
import onnx
import pytest

from tests.support.recurrent_models import recurrent_model
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import ChannelFactor
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence

STEP = "@step3"


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gru")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE", str(folder / "cache"))
        onnx.save(recurrent_model("GRU", sizes=(4, 1, 16, 64), states="none", outputs=("hn",),
                                  attributes={"linear_before_reset": 1}), folder / "net.onnx")
        return compile_network(find_model(str(folder / "net.onnx"), Silence()).path)


@pytest.fixture(scope="module")
def compiled(network):
    return compile_layers(network, PRESETS["base"])


def of_step(compiled):
    return [plan.layer.name.removeprefix("recurrent:") for plan in compiled.plans if STEP in plan.layer.name]


def test_each_gate_is_a_layer_and_weights_are_written_while_the_array_works_on_another(compiled):
    assert of_step(compiled) == [
        f"candidate of state{STEP}", f"gates of state{STEP}[0:64]", f"candidate kept{STEP}:weights[0:8]",
        f"gates of state{STEP}[64:128]", f"state back{STEP}:weights[0:8]", f"candidate kept{STEP}",
        f"state less candidate{STEP}", f"state back{STEP}"]


def test_the_layers_compute_what_the_network_does(network, compiled):
    x = {network.inputs[0].name: np.random.default_rng(1).integers(-128, 128, network.inputs[0].shape, np.int8)}
    name = network.outputs[0].name
    np.testing.assert_array_equal(run_network(compiled.network, x)[name], run_network(network, x)[name])


def test_a_product_finds_its_input_on_the_chip_where_the_load_of_a_residual_waits_for_its_weights(compiled):
    products = [plan for plan in compiled.plans if isinstance(getattr(plan.layer, "factor", None), ChannelFactor)
                and STEP in plan.layer.name]
    assert {plan.layer.name.partition("@")[0]: plan.chip.input for plan in products} == {
        "recurrent:candidate kept": False, "recurrent:state back": True}


def test_weights_that_were_written_some_layers_ago_come_before_the_input_of_the_product(compiled):
    index = next(index for index, plan in enumerate(compiled.plans) if plan.layer.name.endswith(f"state back{STEP}"))
    image = compiled.memory.tensors[compiled.plans[index].layer.factor.weights]
    loads = [place for place, command in compiled.program.commands()
             if command.instruction.mnemonic == "ldw" and image <= command.operands.get("address", -1) < image + 1024]
    assert index - 1 in loads
    assert index not in loads
