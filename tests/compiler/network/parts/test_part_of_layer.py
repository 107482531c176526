"""Parts of layers: what they compute is part of what the layer computes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.stacks import Stack
from tilewright.compiler.network.layers import Layer, Network, Place, TensorInfo
from tilewright.compiler.network.parts.part_of_layer import part_of_layer, parts_side_by_side
from tilewright.compiler.network.reference import run_layer, run_network


def one_layer(**options) -> tuple[Network, Layer, np.ndarray]:
    stack = Stack((5, 20, 9))
    stack.conv(8, 3, **options)
    network = stack.network("one layer")
    return network, network.layers[0], np.random.default_rng(1).integers(-128, 128, (5, 20, 9), dtype=np.int8)


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"pool": (2, 2, 0)}], ids=str)
def test_rows_and_channels_are_those_of_the_layer(options):
    _, layer, x = one_layer(**options)
    whole = run_layer(layer, x)
    part = part_of_layer(layer, 3, 4)
    picked = (int(np.argmax(layer.requantisation.scale)) + np.arange(4)) % 8
    np.testing.assert_array_equal(run_layer(part, x[:, :part.in_shape[1]]), whole[picked, :3])


@pytest.mark.parametrize("options", [{"pad": 1}, {"pad": 1, "stride": 2}, {"pad": 1, "pool": (3, 2, 1)}], ids=str)
def test_rows_away_from_the_lower_padding_are_those_of_the_layer(options):
    _, layer, x = one_layer(**options)
    whole = run_layer(layer, x)
    part = part_of_layer(layer, 4, 8)
    assert part.pads == layer.pads
    np.testing.assert_array_equal(run_layer(part, x[:, :part.in_shape[1]])[:, :2], whole[:, :2])


def test_the_whole_layer_is_a_part():
    _, layer, x = one_layer(pad=1, stride=2)
    np.testing.assert_array_equal(run_layer(part_of_layer(layer, 10, 8), x), run_layer(layer, x))


def test_parts_run_side_by_side():
    network, layer, x = one_layer()
    parts = [part_of_layer(layer, rows, 4) for rows in (1, 2)]
    together = parts_side_by_side(network, parts)
    inputs = {info.name: x[:, :info.shape[1]] for info in together.inputs}
    values = run_network(together, inputs)
    for index, part in enumerate(parts):
        np.testing.assert_array_equal(values[f"conv0 {index}"], run_layer(part, x[:, :part.in_shape[1]]))


def test_parts_lie_in_larger_tensors_as_the_layer_does():
    network, _, x = one_layer()
    network = inside_larger(network)
    (layer,) = network.layers
    together = parts_side_by_side(network, [part_of_layer(layer, 2, 4), part_of_layer(layer, 18, 8)])
    whole = {info.name: np.zeros(info.shape, np.int8) for info in together.inputs}
    for image in whole.values():
        image[2:7] = x
    values = run_network(together, whole)
    first = run_layer(layer, x)
    picked = (int(np.argmax(layer.requantisation.scale)) + np.arange(4)) % 8
    np.testing.assert_array_equal(values["conv0 0"], first[picked, :2])
    np.testing.assert_array_equal(values["copy 1"], first)
    np.testing.assert_array_equal(values["joined 1"][3:11], first)
    np.testing.assert_array_equal(values["joined 1"][11:], first)
    assert together.tensors["conv0 0"].place == replace(network.tensors["conv0"].place, parent="joined 0")


def inside_larger(network: Network) -> Network:
    """Return a layer that reads channels of a tensor, and writes its result to two places in another."""
    def within(name: str, parent: str, offset: int, channels: int) -> TensorInfo:
        info = network.tensors[name]
        place = Place(parent=parent, offset=offset, row_step=info.shape[2] * channels, pixel_step=channels)
        return replace(info, place=place)

    wide = replace(network.tensors["input"], name="wide", shape=(7, 20, 9))
    joined = replace(network.tensors["conv0"], name="joined", shape=(19, 18, 7))
    tensors = {"wide": wide, "joined": joined, "input": within("input", "wide", 2, 7),
               "conv0": within("conv0", "joined", 3, 19),
               "copy": replace(within("conv0", "joined", 11, 19), name="copy")}
    (layer,) = network.layers
    return replace(network, layers=(replace(layer, also=("copy",)),), tensors=tensors, inputs=(wide,),
                   outputs=(joined,))


@pytest.mark.parametrize("count", [(0, 8), (19, 8), (1, 9), (1, 0)])
def test_what_a_layer_does_not_have_is_refused(count):
    _, layer, _ = one_layer()
    with pytest.raises(ValueError, match=r"'conv0' .*18 rows and 8 channels"):
        part_of_layer(layer, *count)
