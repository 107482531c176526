"""Machines that leave out units: the same values, down to the RTL, and no command that they lack.

In RTL, machines without each of the units, and each pair of them, are among those of tests/fuzz/test_designs.py, which
run the same random layers. Pairs of channels are those of `base`, too, and of a random design.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import HOSTED
from tests.support.side_by_side import assert_layers_equal_the_reference, random_side_by_side
from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.isa.lacking import WINOGRAD, lacking
from tilewright.isa.machine import UNITS, Machine

SMALL = Machine(name="small", lanes=2, clusters=1, post_lanes=2, bus_bytes=4, activation_bytes=8192, weight_bytes=8192,
                result_bytes=4096, parameter_channels=64)
PLAIN = replace(SMALL, name="plain", array="plain")
INNER = replace(SMALL, name="inner products", array="inner")
PAIRS = replace(SMALL, name="pairs of channels", array="winograd_inner")
ALONE = tuple(replace(SMALL, name=f"without {unit}", **{unit: False}) for unit in UNITS)
FEWEST = replace(PLAIN, name="fewest units", **dict.fromkeys(UNITS, False))
FEWEST_WINOGRAD = replace(FEWEST, name="conv23 alone", array="winograd")
FEWEST_INNER = replace(FEWEST, name="inner products alone", array="inner")
FEWEST_PAIRS = replace(FEWEST, name="pairs of channels alone", array="winograd_inner")


def lacked(compiled: Compiled) -> list[str]:
    """Return the commands of a program that its machine lacks."""
    return [str(each) for _, each in compiled.program.actions() if hasattr(each, "instruction")
            and lacking(compiled.machine, each.instruction.mnemonic, each.variant.name, each.operands)]


@pytest.mark.parametrize("machine", [PLAIN, INNER, PAIRS, *ALONE, FEWEST, FEWEST_WINOGRAD, FEWEST_INNER, FEWEST_PAIRS],
                         ids=lambda machine: machine.name)
@pytest.mark.parametrize("seed", range(2))
def test_the_functional_engine_computes_the_same_with_what_is_left(machine, seed):
    network, inputs = random_side_by_side(machine, seed)
    compiled = compile_layers(network, machine, keep_tensors=True)
    assert not lacked(compiled)
    expected, found = run_network(network, inputs), execute(compiled, inputs)
    for layer in network.layers:
        np.testing.assert_array_equal(found[layer.output], expected[layer.output], err_msg=layer.name)


def test_some_layer_needs_each_unit():
    networks = [random_side_by_side(SMALL, seed)[0] for seed in range(2)]
    commands = [each for network in networks for _, each in compile_layers(network, SMALL).program.actions()
                if hasattr(each, "instruction")]
    for unit in (WINOGRAD, *(unit for unit in UNITS if getattr(SMALL, unit) and unit != "chaining")):
        machine = PLAIN if unit == WINOGRAD else replace(SMALL, **{unit: False})
        assert any(lacking(machine, each.instruction.mnemonic, each.variant.name, each.operands)
                   for each in commands), unit


def test_rtl_of_a_plain_array_beside_the_second_host(tmp_path):
    assert_layers_equal_the_reference(HOSTED["ibex"], 0, tmp_path, host="ibex")


@pytest.mark.slow   # lanes of inner products have tests in Amaranth's simulator, and those of `base` take conv, too
@pytest.mark.parametrize("machine", [PLAIN, INNER, PAIRS, FEWEST_WINOGRAD], ids=lambda machine: machine.name)
def test_rtl_without_units(machine, tmp_path):
    assert_layers_equal_the_reference(machine, 0, tmp_path)
