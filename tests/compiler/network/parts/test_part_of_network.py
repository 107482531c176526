"""A slice of a network computes what the network does there, from the tensors that cross its borders."""

import numpy as np
import pytest

from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.parts.part_of_network import slice_network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.models import builtin


@pytest.fixture(scope="module")
def lenet5():
    return compile_network(builtin("lenet5"))


@pytest.fixture(scope="module")
def residual():
    """Return a network whose first tensor is read again two layers later."""
    builder = ModelBuilder("qdq", seed=5)
    x = builder.conv(builder.input((1, 4, 6, 6)), 8, kernel=3, pads=(1, 1, 1, 1))
    y = builder.conv(builder.conv(x, 8, kernel=3, pads=(1, 1, 1, 1)), 8, kernel=3, pads=(1, 1, 1, 1))
    return compile_network(builder.finish(builder.add(x, y)))


def tensors_of(network):
    rng = np.random.default_rng(0)
    return run_network(network, {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8)
                                 for info in network.inputs})


@pytest.mark.parametrize("name", ["lenet5", "residual"])
def test_every_slice_computes_the_same_tensors(name, request):
    network = request.getfixturevalue(name)
    expected = tensors_of(network)
    for first in range(len(network.layers)):
        for stop in range(first + 1, len(network.layers) + 1):
            part = slice_network(network, first, stop)
            found = run_network(part, {info.name: expected[info.name] for info in part.inputs})
            assert found.keys() == part.tensors.keys()
            for tensor, values in found.items():
                np.testing.assert_array_equal(values, expected[tensor])


def test_a_tensor_that_is_read_later_is_an_output_and_one_computed_earlier_an_input(residual):
    whole = slice_network(residual, 0, len(residual.layers))
    assert (whole.inputs, whole.outputs) == (residual.inputs, residual.outputs)
    shared = residual.layers[0].output
    last = slice_network(residual, len(residual.layers) - 1, len(residual.layers))
    assert shared in last.layers[0].reads
    assert shared in {info.name for info in last.inputs}
    first = slice_network(residual, 0, 2)
    assert [info.name for info in first.outputs] == [shared, residual.layers[1].output]


@pytest.mark.parametrize(("first", "stop"), [(-1, 2), (2, 2), (3, 2), (0, 6)])
def test_no_layers_are_refused(lenet5, first, stop):
    with pytest.raises(ValueError, match=rf"0:5 .*not {first}:{stop}$"):
        slice_network(lenet5, first, stop)
