"""The XPULP baseline on the simulated core: exact, as fast as was measured, and scaled from parts within 2 %."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.stacks import Stack
from tilewright.compiler.network.layers import Network, Place
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.models import builtin
from tilewright.runtime.baseline.core_alone import run_baseline


def image_of(network: Network) -> dict[str, np.ndarray]:
    info = network.inputs[0]
    return {info.name: np.random.default_rng(0).integers(-128, 128, info.shape, dtype=np.int8)}


def test_every_kind_of_layer_is_exact():
    """Channels that are no multiple of four, a step, pooling within the image and beyond it, an addition, a vector."""
    stack = Stack((3, 14, 14))
    first = stack.conv(8, 3, pad=1)
    stack.conv(8, 3, pad=1, residual=first)
    stack.conv(10, 3, pad=1, pool=(2, 2, 0))
    stack.conv(12, 5, stride=2, pad=2)
    stack.conv(12, 3, pad=1, pool=(3, 2, 1))
    stack.conv(20, 1)
    stack.average()
    stack.conv(11, 0)
    network = stack.network("one of each")
    result = run_baseline(network, image_of(network), core="cv32e40p")
    assert result.matches
    assert all(layer.origin == "whole" for layer in result.layers)
    assert all(layer.instructions < layer.cycles for layer in result.layers)


def test_lenet_takes_a_fraction_of_the_scalar_cycles():
    network = compile_network(builtin("lenet5"))
    simd, scalar = (run_baseline(network, image_of(network), core=core) for core in ("cv32e40p", "cv32e40x"))
    assert simd.matches
    assert scalar.matches
    assert 3 * simd.cycles < scalar.cycles


def two_convolutions() -> Network:
    stack = Stack((16, 24, 24))
    stack.conv(48, 3, pad=1)
    stack.conv(48, 3, pad=1, pool=(2, 2, 0))
    return stack.network("two convolutions")


def test_many_channels_take_under_half_a_cycle_per_multiply_accumulate():
    network = two_convolutions()
    whole = run_baseline(network, image_of(network), core="cv32e40p", slices=False)
    assert whole.matches
    assert 0.375 < whole.layers[1].cycles_per_mac < 0.47  # 8 loads and 16 instructions per 64 at the least


def test_parts_of_tensors_inside_others_are_within_two_per_cent_too(monkeypatch, tmp_path):
    monkeypatch.setattr("tilewright.runtime.baseline.core_alone.cache_folder", lambda: tmp_path)
    stack = Stack((16, 24, 24))
    stack.conv(64, 3, pad=1)
    network = stack.network("inside another")
    info = network.tensors["conv0"]
    joined = replace(info, name="joined", shape=(96, 24, 24))
    place = Place(parent="joined", offset=32, row_step=24 * 96, pixel_step=96)
    placed = replace(network, tensors={**network.tensors, "joined": joined, "conv0": replace(info, place=place)},
                     outputs=(joined,))
    whole, scaled, apart = (run_baseline(each, image_of(each), core="cv32e40p", slices=slices).layers[0]
                            for each, slices in ((placed, False), (placed, True), (network, False)))
    assert scaled.origin == "slices"
    assert scaled.cycles == pytest.approx(whole.cycles, rel=0.02)
    assert whole.cycles > 1.05 * apart.cycles  # the copy is a part of it that is seen


def test_scaled_cycles_are_within_two_per_cent_of_a_whole_run(monkeypatch, tmp_path):
    monkeypatch.setattr("tilewright.runtime.baseline.core_alone.cache_folder", lambda: tmp_path)
    network = two_convolutions()
    whole = run_baseline(network, image_of(network), core="cv32e40p", slices=False)
    scaled = run_baseline(network, image_of(network), core="cv32e40p", slices=True)
    assert scaled.matches
    for exact, estimate in zip(whole.layers, scaled.layers, strict=True):
        assert estimate.origin == "slices"
        assert estimate.cycles == pytest.approx(exact.cycles, rel=0.02)
        assert estimate.instructions == pytest.approx(exact.instructions, rel=0.02)
    monkeypatch.setattr("tilewright.runtime.baseline.core_alone.run_bare", None)  # what is kept is not run again
    assert run_baseline(network, image_of(network), core="cv32e40p", slices=True) == scaled
