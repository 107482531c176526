"""Value tables at every altitude: networks of them in RTL, bit for bit, and what they cost there."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MACHINES, slow_unless_built
from tests.support.random_layers import with_tables
from tests.support.rtl import execute_rtl
from tests.support.stacks import resnet, vgg
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS, Machine

NETWORKS = {
    "vgg": with_tables(vgg(24, ((8, 2), (16, 2), (24, 1)), (20, 10))),
    "resnet": with_tables(resnet(24, (8, 16, 24), (2, 1, 1))),
}

CYCLES_PER_TABLE = 40
"""On average at most: most of its 256 bytes come in time, but a command with another table than the one before starts
only when nothing is on its way. Measured: 12, and 37 where the array is bound by the bus."""


def run(network: Network, machine: Machine, folder: Path, *, exact: bool) -> int:
    """Return the cycles of ``network`` in RTL; with ``exact`` every tensor must be the reference's."""
    rng = np.random.default_rng(5)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=True)
    tensors, result = execute_rtl(compiled, inputs, folder)
    if exact:
        expected, functional = run_network(network, inputs), execute(compiled, inputs)
        for layer in network.layers:
            name = layer.output
            np.testing.assert_array_equal(functional[name], expected[name], err_msg=f"{name}, functional engine")
            np.testing.assert_array_equal(tensors[name], expected[name], err_msg=f"{name}, RTL")
    return result.cycles


def without_tables(network: Network) -> Network:
    return replace(network, layers=tuple(replace(layer, table=None) for layer in network.layers))


@pytest.mark.parametrize("name", NETWORKS)
def test_tables_are_exact_in_rtl_and_keep_the_rate(name, tmp_path):
    network, base = NETWORKS[name], PRESETS["base"]
    cycles = run(network, base, tmp_path, exact=True)
    plain = run(without_tables(network), base, tmp_path, exact=False)
    assert plain < cycles <= plain + CYCLES_PER_TABLE * len(network.layers)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("machine", slow_unless_built(each for each in MACHINES.values() if each.name != "base"))
def test_tables_are_exact_in_rtl_of_other_machines(name, machine, tmp_path):
    run(NETWORKS[name], machine, tmp_path, exact=True)
