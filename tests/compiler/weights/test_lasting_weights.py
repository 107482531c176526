"""Layers that find their weights on the chip are planned as having none to load."""

from dataclasses import replace

import onnx
import pytest

from tests.support.recurrent_models import recurrent_model
from tilewright.compiler.compile import fit_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence


@pytest.mark.parametrize(("weight_bytes", "channels", "lasting"), [
    (65536, 1024, True), (4096, 1024, False), (65536, 256, True), (65536, 64, False)])
def test_products_of_a_state_have_their_weights_early_where_these_have_room(tmp_path, monkeypatch, weight_bytes,
                                                                            channels, lasting):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    onnx.save(recurrent_model("RNN", sizes=(4, 1, 16, 64), states="none"), tmp_path / "net.onnx")
    network = compile_network(find_model(str(tmp_path / "net.onnx"), Silence()).path)
    machine = replace(PRESETS["base"], weight_bytes=weight_bytes, parameter_channels=channels, name="some")
    products = [plan for plan in fit_network(network, machine)[1]
                if plan.layer.weights is not None and plan.layer.weights.shape[:2] == (64, 64)]
    assert len(products) == 3
    assert {plan.layer.early_weights for plan in products} == {lasting}
    assert all(plan.cost.bytes < plan.layer.macs for plan in products) is lasting
