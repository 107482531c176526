"""One question at every altitude: which tensors does LeNet-5 compute for a digit? Down to the RTL, ONNX Runtime's."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest

from tests.support.machines import slow_unless_built
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.models import builtin, data
from tilewright.runtime.baseline.core_alone import run_baseline
from tilewright.runtime.oracle.conversion import as_int8, quantise_input
from tilewright.runtime.oracle.onnx_runtime import Reference
from tilewright.runtime.session import InferenceSession

DIGITS = data.samples()
MODELS = ["lenet5", "lenet5_accel"]

Tensors = Mapping[str, np.ndarray]


@cache
def session(model: str, machine: str, engine: str) -> InferenceSession:
    return InferenceSession(builtin(model), machine, engine, keep_tensors=True)


@cache
def onnx_runtime(model: str) -> Reference:
    return Reference(builtin(model))


@cache
def network(model: str):
    return compile_network(builtin(model))


def quantised(model: str, image: np.ndarray) -> dict[str, np.ndarray]:
    (info,) = network(model).inputs
    return {info.name: quantise_input(info, image)}


def by_engine(model: str, machine: str, engine: str) -> Callable[[np.ndarray], Tensors]:
    def run(image: np.ndarray) -> Tensors:
        ready = session(model, machine, engine)
        ready.run(None, {"image": image})
        return ready.tensors
    return run


def assert_every_tensor_is_onnx_runtimes(model: str, run: Callable[[np.ndarray], Tensors], digits: range) -> None:
    layers = {layer.output for layer in network(model).layers}
    for digit in digits:
        image = DIGITS.images[digit:digit + 1]
        expected, tensors = onnx_runtime(model).run({"image": image}), run(image)
        assert layers <= set(tensors)
        for name, values in tensors.items():
            np.testing.assert_array_equal(values, as_int8(expected[name]).reshape(values.shape),
                                          err_msg=f"digit {digit}, tensor {name}")


@pytest.mark.parametrize("model", MODELS)
def test_integer_reference(model):
    assert_every_tensor_is_onnx_runtimes(
        model, lambda image: run_network(network(model), quantised(model, image)), range(32))


@pytest.mark.parametrize("model", MODELS)
def test_plain_c_on_the_host_core(model):
    assert_every_tensor_is_onnx_runtimes(
        model, lambda image: run_baseline(network(model), quantised(model, image)).tensors, range(1))


@pytest.mark.parametrize("machine", PRESETS)
@pytest.mark.parametrize("model", MODELS)
def test_instructions(model, machine):
    assert_every_tensor_is_onnx_runtimes(model, by_engine(model, machine, "fast"), range(8))


def test_cycles_are_within_the_promise():
    ready = InferenceSession(builtin("lenet5"), "base", "rtl")
    ready.run(None, {"image": DIGITS.images[:1]})
    assert ready.report.cycles <= 14_226


@pytest.mark.parametrize("machine", slow_unless_built(PRESETS.values()))
@pytest.mark.parametrize("model", MODELS)
def test_registers(model, machine):
    assert_every_tensor_is_onnx_runtimes(model, by_engine(model, machine.name, "rtl"), range(2))


@pytest.mark.parametrize("model", MODELS)
def test_digits_are_recognised(model):
    """Agreement alone could be agreement on nonsense."""
    (output,) = network(model).outputs
    found = [int(run_network(network(model), quantised(model, image[np.newaxis]))[output.name].argmax())
             for image in DIGITS.images]
    assert np.mean(found == DIGITS.labels) > 0.9
