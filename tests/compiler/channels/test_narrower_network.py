"""A network without channels that need no computation has the values of the one that has them."""

import numpy as np
import pytest

from tests.support.pruned import pruned
from tests.support.random_branches import random_branches
from tests.support.random_chains import random_chain, random_separable
from tests.support.random_places import random_sketch
from tilewright.compiler.channels.channel_places import ChannelPlaces
from tilewright.compiler.channels.constant_channels import ConstantChannels
from tilewright.compiler.channels.narrower_network import narrower_network
from tilewright.compiler.channels.needed_channels import needed_channels
from tilewright.compiler.channels.whole_tensors import whole_values
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network


def places(rng: np.random.Generator) -> Network:
    sketch, outputs = random_sketch(rng, views=rng.random() < 0.5)
    return sketch.network(outputs)


def narrow(network: Network, multiple: int = 1, *, keep: bool = False) -> Network:
    where = ChannelPlaces.of(network)
    constants = ConstantChannels(network, where)
    kept = needed_channels(network, where, constants, multiple=multiple, all_that_vary=keep)
    return narrower_network(network, where, constants, kept)


@pytest.mark.parametrize("make", [random_branches, random_chain, random_separable, places])
@pytest.mark.parametrize("seed", range(25))
def test_every_tensor_that_can_be_filled_in_is_the_same(make, seed):
    rng = np.random.default_rng(seed)
    network = pruned(rng, make(rng), float(rng.choice([0.2, 0.5, 0.8])))
    inputs = {info.name: rng.integers(-128, 128, info.array_shape, dtype=np.int8) for info in network.inputs}
    expected = run_network(network, inputs)
    for keep in (True, False):
        smaller = narrow(network, int(rng.choice([1, 3, 8])), keep=keep)
        found = whole_values(run_network(smaller, inputs), smaller.tensors)
        assert not keep or found.keys() == expected.keys()
        assert {info.name for info in network.outputs} <= found.keys()
        for name, values in found.items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)
