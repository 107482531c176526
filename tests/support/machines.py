"""Machines by name for tests: the presets, and one so small that most layers must be cut."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tilewright.isa.machine import PRESETS, Machine

TINY = Machine(name="tiny", lanes=2, clusters=1, post_lanes=2, bus_bytes=4, activation_bytes=4096, weight_bytes=4096,
               result_bytes=1024, parameter_channels=16)

MACHINES = {**PRESETS, TINY.name: TINY}

MORE_UNITS = Machine(name="more units", array="winograd", lanes=4, clusters=2, post_lanes=2, bus_bytes=4,
                     activation_bytes=16384, weight_bytes=8192, result_bytes=4096, parameter_channels=1024,
                     channel_kernels=True, integer_requantise=True, row_unit=True, wide_words=True)
"""A small machine with units that no preset has, so that one simulator does for the tests of each."""

MORE_PAIRS = Machine(name="more pairs", array="winograd_inner", lanes=8, clusters=1, post_lanes=8, bus_bytes=8,
                     activation_bytes=16384, weight_bytes=16384, result_bytes=4096, parameter_channels=512,
                     channel_kernels=True, four_patches=True, wide_words=True)
"""The same, of pairs of channels and with a wider bus."""

HOSTED = {"cv32e40x": PRESETS["nano"],
          "ibex": replace(PRESETS["nano"], name="plain", array="plain", lanes=2, post_lanes=2)}
"""A machine beside each host: beside the second one an array that no preset has, whose layers run there, too."""

WINOGRAD_MACHINES = {"nano": PRESETS["nano"], "base": Machine(name="base"),
            "large": replace(PRESETS["large"], array="winograd", lanes=16, post_lanes=8)}
"""The presets with an array whose multiplications are one multiply-accumulate each."""

BUILT = ("nano", "base")
"""Machines whose simulators `make test` builds in any case: on them a small network takes a second or two."""


def slow_unless_built(machines: Iterable[Machine]) -> list[object]:
    """Return machines as parameters of a test, named, and marked as slow where a simulator must be built for it."""
    return [pytest.param(each, id=each.name, marks=[pytest.mark.slow] * (each.name not in BUILT)) for each in machines]


def with_units(machine: Machine, units: str) -> Machine:
    """Return ``machine`` as a preset is, with ``rows`` and other units, or in whole numbers ``alone``."""
    more = units != "preset"
    return replace(machine, row_unit=units == "rows", channel_kernels=more, integer_requantise=more,
                   float_requantise=units != "alone")
