"""A network predicted on many designs: what engine ``fast`` gives, without reading the network again."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from tilewright.isa.machine import MemoryTiming
from tilewright.models import builtin
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.execution.report import Report
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.runtime.session import InferenceSession

DESIGNS = ("base", "nano", "large", "base,activation_bytes=8KiB,queue_depth=4")


@pytest.fixture(scope="module")
def network() -> PredictedNetwork:
    return PredictedNetwork.named("lenet5")


def run_fast(text: str, memory: MemoryTiming) -> Report:
    session = InferenceSession(builtin("lenet5"), text, keep_tensors=True, memory=memory)
    session.run(None, {each.name: np.zeros(each.shape, np.float32) for each in session.get_inputs()})
    return session.report


@pytest.mark.parametrize("latency", [20, 100])
@pytest.mark.parametrize("text", DESIGNS)
def test_cycles_and_counters_are_those_of_the_fast_engine(network, text, latency):
    memory = MemoryTiming(latency_cycles=latency, bytes_per_cycle=4)
    predicted = network.predict(replace(design_of(text), memory=memory))
    run = run_fast(text, memory)
    assert predicted.cycles == run.cycles
    assert predicted.instructions == run.instructions
    assert [(each.name, each.cycles, each.counts) for each in predicted.layers] == [
        (each.name, each.cycles, each.counts) for each in run.layers]
    assert predicted.energy.total_uj == pytest.approx(run.energy.total_uj, rel=0.25)


def test_the_answer_does_not_depend_on_the_designs_asked_before(network):
    first = network.predict(design_of("base")).cycles
    network.predict(design_of("nano"))
    assert network.predict(design_of("base")).cycles == first


def test_a_network_goes_to_another_process(network):
    assert pickle.loads(pickle.dumps(network)).predict(design_of("nano")).cycles == \
        network.predict(design_of("nano")).cycles
