"""Layers that are too wide for the machine are computed channels by channels, with the same result."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import WINOGRAD_MACHINES
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.planner import DoesNotFitError
from tilewright.compiler.schedule.races import check

MACHINE = replace(WINOGRAD_MACHINES["nano"], activation_bytes=4096)


def networks():
    """Yield (what it is, content) of models whose last layers need more activations than MACHINE has."""
    model = ModelBuilder("qdq", seed=1)
    x = model.conv(model.input((1, 3, 12, 12)), 100, kernel=1)
    yield "average", model.finish(model.conv(model.average(x), 5, kernel=1))
    model = ModelBuilder("qdq", seed=2)
    x = model.input((1, 100, 12, 12))
    yield "average of an input", model.finish(model.average(x))
    model = ModelBuilder("qdq", seed=3)
    x = model.conv(model.input((1, 3, 30, 30)), 90, kernel=1)
    yield "depthwise", model.finish(model.conv(x, 90, kernel=9, groups=90))


@pytest.mark.parametrize(("what", "content"), list(networks()), ids=[what for what, _ in networks()])
def test_channels_are_split_where_they_do_not_fit(what, content):
    network = compile_network(content)
    compiled = compile_layers(network, MACHINE, keep_tensors=True)
    assert len(compiled.network.layers) > len(network.layers), what
    check((command for _, command in compiled.program.commands()), MACHINE)
    rng = np.random.default_rng(0)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    expected, found = run_network(network, inputs), execute(compiled, inputs)
    split = run_network(compiled.network, inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
        np.testing.assert_array_equal(split[name], value)


def test_what_cannot_be_split_is_refused():
    model = ModelBuilder("qdq", seed=4)
    x = model.input((1, 20, 40, 40))
    network = compile_network(model.finish(model.conv(x, 4, kernel=(11, 39))))
    with pytest.raises(DoesNotFitError):
        compile_layers(network, MACHINE)


def test_parts_of_a_kernel_as_wide_as_the_image_take_tiles_of_several_rows():
    model = ModelBuilder("qdq", seed=4)
    x = model.input((1, 20, 40, 40))
    network = compile_network(model.finish(model.conv(x, 4, kernel=(11, 40))))
    compiled = compile_layers(network, MACHINE, keep_tensors=True)
    (plan,) = compiled.plans
    assert len(plan.tiles) > 1
    assert len(plan.blocks[0].runs) < plan.nest.runs
    check((command for _, command in compiled.program.commands()), MACHINE)
    inputs = {info.name: np.random.default_rng(0).integers(-128, 128, info.shape, dtype=np.int8)
              for info in network.inputs}
    found = execute(compiled, inputs)
    for name, value in run_network(network, inputs).items():
        np.testing.assert_array_equal(found[name], value)
