"""Random CNN graphs in batches: every tensor of every image is that of the image alone."""

import pytest

from tests.fuzz.run import form_of, graph_of
from tests.support.batches import assert_batch_is_its_images
from tilewright.compiler.errors import CompileError, UnsupportedModelError
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import preset

_SEED = 4000
_GRAPHS = 12


@pytest.mark.parametrize("first", range(0, 10 * _GRAPHS, _GRAPHS))
def test_random_graphs_compute_each_image_of_a_batch(first):
    done = 0
    for number in range(first, first + _GRAPHS):
        content = graph_of(_SEED + number, form_of(number)).model.SerializeToString()
        try:
            network = compile_network(content)
        except CompileError:
            continue  # tests/fuzz/test_graphs.py bounds how many are refused
        try:
            assert_batch_is_its_images(network, preset(("nano", "base")[number % 2]), 2 + number % 2, number)
        except UnsupportedModelError:
            continue  # an input or output without a leading 1
        done += 1
    assert done >= _GRAPHS // 2, "most graphs must be computed, or nothing is tested"
