"""Integer .tflite networks of packages of others compute what each of the three engines does, tensor by tensor."""

import math

import pytest

from tests.support.tflite_packages import IN_WHEEL, KEPT, content_of, package_results, unlike
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.mark import ENGINES

RESULTS = package_results()


def test_the_results_are_of_these_networks():
    assert set(RESULTS) == {*KEPT, *IN_WHEEL}
    assert len(RESULTS) >= 17


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*KEPT, *(pytest.param(name, marks=pytest.mark.slow) for name in IN_WHEEL)])
def test_a_network_of_a_package_computes_what_the_engine_does(name, engine):
    content = content_of(name)
    wrong, compared = unlike(content, engine, RESULTS[name][engine])
    assert not wrong
    # What ends in an addition, and what only moves, has no tensor of its own.
    assert compared >= len(read_file(content, name).operators) // 2


def test_a_mean_without_a_scale_of_the_datapath_leaves_its_sums_to_the_core():
    """42x42 pixels, whose multiplier has 30 bits: the core gets 16 sums, not 28,224 levels."""
    content = content_of("fingerprint-signature")
    network = compile_network(read_model(content, "tflm").SerializeToString())
    read = {name for layer in network.layers if isinstance(layer, CoreLayer) for name in layer.reads}
    assert {math.prod(network.tensors[name].shape) for name in read & network.tensors.keys()} == {16}


@pytest.mark.parametrize("name", ["image-example", "magic-wand"])
def test_an_input_that_the_host_quantises_is_not_copied(name):
    """The kernels' products read its levels as whole numbers, by another scale than the host's."""
    networks = [compile_network(read_model(content_of(name), engine).SerializeToString()) for engine in ENGINES]
    first, *others = [[layer.kind for layer in network.layers if isinstance(layer, Layer)] for network in networks]
    assert all(each == first for each in others)
