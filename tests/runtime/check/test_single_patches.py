"""What says why depthwise layers have one patch at a time, on a machine that has four."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.stacks import Stack
from tilewright.compiler.compile import compile_layers
from tilewright.isa.machine import Machine, preset
from tilewright.runtime.check.single_patches import SinglePatches, WhySingle, lacking_units, single_patches

FOUR = replace(preset("base"), channel_kernels=True, four_patches=True)


def causes(machine: Machine, *, channels: int = 16, kernel: int = 3, change: dict[str, object] | None = None,
           keep: bool = False) -> dict[WhySingle, tuple[str, ...]]:
    """Return the causes in a network of a layer of one pixel, a depthwise one and another of one pixel."""
    stack = Stack((8, 12, 12))
    stack.conv(channels, 1)
    stack.depthwise(kernel, pad=kernel // 2)
    stack.layers[-1] = replace(stack.layers[-1], **(change or {}))
    stack.conv(8, 1)
    compiled = compile_layers(stack.network("single"), machine, keep_tensors=keep)
    return {each.why: each.layers for each in single_patches(compiled.plans, machine)}


def test_each_cause_is_named():
    assert causes(FOUR) == causes(preset("base"), kernel=5) == {}
    assert causes(FOUR, kernel=5) == {WhySingle.KERNEL: ("conv1",)}
    assert causes(FOUR, kernel=2) == {}
    assert causes(FOUR, change={"dilations": (2, 2), "pads": (2, 2, 2, 2)}) == {WhySingle.DILATED: ("conv1",)}
    beyond = np.full((16, 1, 3, 3), 200, np.int16)
    assert causes(FOUR, change={"weights": beyond}) == {WhySingle.WEIGHTS: ("conv1",)}


def test_channels_that_lanes_do_not_divide_count_where_tensors_are_kept():
    assert causes(FOUR, channels=20) == {}
    assert causes(FOUR, channels=20, keep=True) == {WhySingle.CHANNELS: ("conv1",)}


@pytest.mark.parametrize(("machine", "kernel", "depthwise", "units"), [
    (preset("base"), 3, 50, "channel_kernels=true,four_patches=true"),
    (replace(preset("base"), channel_kernels=True), 3, 50, " four_patches=true"),
    (preset("base"), 5, 50, None), (preset("base"), 3, 4, None), (FOUR, 3, 50, None), (preset("nano"), 3, 50, None)])
def test_units_that_would_help_are_named_where_the_machine_can_have_them(machine, kernel, depthwise, units):
    stack = Stack((16, 12, 12))
    stack.depthwise(kernel, pad=kernel // 2)
    stack.conv(8, 1)
    plans = compile_layers(stack.network("single"), machine).plans
    said = lacking_units(plans, {"conv0": depthwise, "conv1": 100 - depthwise}, machine)
    assert (units is not None and units in said and f" {depthwise} % " in said) or said == ""
    assert bool(said) == (units is not None)


@pytest.mark.parametrize("why", WhySingle)
def test_the_sentence_names_the_layers(why):
    text = str(SinglePatches(why, ("first", "second"), 8))
    assert text.endswith(": first, second")
    assert "{" not in text
