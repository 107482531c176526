"""Designs drawn from the whole space: the same values on every one; in RTL on small ones."""

from dataclasses import replace

import pytest

from tests.fuzz.designs import NETWORKS, fitting_design, try_network

SEED = 13


@pytest.mark.parametrize("number", range(3))
def test_random_designs_compute_what_onnx_runtime_does(number):
    machine = fitting_design(SEED, number)
    for name in NETWORKS:
        assert try_network(name, machine, rtl=False).faults == ()


@pytest.mark.parametrize("number", range(2))
def test_small_random_designs_in_rtl(number):
    machine = fitting_design(SEED, number, lanes_range=(1, 1))
    for name in NETWORKS:
        assert try_network(name, machine).faults == ()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "lanes"), [*((number, (1, 16)) for number in range(30)), (30, (32, 32)),
                                              (31, (64, 64))])
def test_random_designs_in_rtl(number, lanes):
    machine = fitting_design(SEED, number, lanes_range=lanes)
    for name in NETWORKS:
        assert try_network(name, replace(machine, name="random")).faults == ()
