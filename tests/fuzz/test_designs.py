"""Designs drawn from the whole space: the same values on every one; in RTL on small ones.

The slow ones in RTL are chosen so that every pair of traits is on some machine (`tests.fuzz.covering`): each kind of
array with and without each unit, each two units, narrow and wide buses with few and many lanes, and so on. That takes
half as many simulators as drawing them, and small ones. The campaign (``python -m tests.fuzz.designs``) draws more, and
wider ones: ``--wide 64``.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.fuzz import designs
from tests.fuzz.covering import covering_designs, pairs
from tests.fuzz.designs import NETWORKS, Results, Trial, fitting_design, random_design, try_network
from tests.support.side_by_side import assert_layers_equal_the_reference
from tilewright.isa.machine import ARRAYS, Machine

SEED = 13
DRAWS, LANES = 1000, (1, 16)
COVERING = 16


@cache
def chosen() -> list[Machine]:
    return list(covering_designs(SEED, DRAWS, LANES))


@pytest.mark.parametrize("number", range(3))
def test_random_designs_compute_what_onnx_runtime_does(number):
    machine = fitting_design(SEED, number)
    for name in NETWORKS:
        assert try_network(name, machine, rtl=False).faults == ()


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_small_random_designs_in_rtl(number):
    machine = fitting_design(SEED, number, lanes_range=(1, 1))
    for name in NETWORKS:
        assert try_network(name, machine).faults == ()


WIDE = [
    Machine(name="bus 32", lanes=2, clusters=2, tiles=2, post_lanes=2, bus_bytes=32, array="winograd"),
    Machine(name="bus 64", lanes=4, clusters=4, tiles=2, post_lanes=1, bus_bytes=64, array="plain"),
    Machine(name="bus 64", lanes=8, clusters=4, tiles=2, post_lanes=4, bus_bytes=64, array="winograd_inner"),
]


@pytest.mark.parametrize("machine", WIDE, ids=lambda machine: f"{machine.bus_bytes} {machine.array}")
@pytest.mark.parametrize("rtl", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["fast", "rtl"])
def test_buses_wider_than_the_activation_buffer(machine, rtl):
    small = replace(machine, activation_bytes=1 << 15, weight_bytes=1 << 15, result_bytes=1 << 13,
                    parameter_channels=256, queue_depth=8)
    for name in NETWORKS:
        assert try_network(name, small, rtl=rtl).faults == ()


def test_a_killed_run_goes_on_where_it_was(tmp_path, monkeypatch):
    tried = []

    def trial(name, machine):
        tried.append((name, machine.name))
        return Trial(name, 30_000, 29_900, (10, 12), ("a fault",) * (machine.lanes == 2))

    monkeypatch.setattr(designs, "try_network", trial)
    machines = [Machine(name=f"lanes {each}", lanes=each, post_lanes=1) for each in (1, 2)]
    path = tmp_path / "trials.jsonl"
    first = [Results(path).get("residuals", machine) for machine in machines]
    assert [Results(path).get("residuals", machine) for machine in machines] == first
    assert Results(path).get("pooling", machines[0]).network == "pooling"
    assert tried == [("residuals", "lanes 1"), ("residuals", "lanes 2"), ("pooling", "lanes 1")]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(COVERING))
def test_covering_designs_in_rtl(number, tmp_path):
    machine = chosen()[number]
    for name in NETWORKS:
        assert try_network(name, machine).faults == ()
    assert_layers_equal_the_reference(machine, number, tmp_path)


@pytest.mark.slow  # choosing them takes seconds
def test_covering_designs_have_every_pair_of_traits_that_designs_have():
    assert len(chosen()) == COVERING
    met = set().union(*map(pairs, chosen()))
    assert {machine.array for machine in chosen()} == set(ARRAYS)
    others = [random_design(np.random.default_rng(number), lanes_range=LANES) for number in range(50)]
    assert not [pair for machine in others for pair in pairs(machine) - met]


@pytest.mark.slow
def test_a_design_of_many_lanes_in_rtl():
    machine = fitting_design(SEED, 30, lanes_range=(32, 32))
    assert try_network("residuals", machine).faults == ()
