"""Units take each product in the cycle in which it stands, also where no enable holds it: tests.support.always_enabled.

Whole machines without the enables are slow tests: tests/end_to_end/test_dsp_block_registers.py.
"""

import random

import pytest

from tests.rtl.arithmetic import test_requantise as requantised
from tests.rtl.arithmetic import test_residual_add as added
from tests.rtl.array.test_mac import layers_for, machine, run_layers
from tests.support.always_enabled import always_enabled
from tilewright.isa import numerics
from tilewright.rtl.arithmetic.product import Product
from tilewright.rtl.arithmetic.requantise import Requantise
from tilewright.rtl.array.lane import Multipliers
from tilewright.rtl.array.mac import MacUnit
from tilewright.rtl.array.pair_multipliers import PairMultipliers


@pytest.mark.parametrize(("array", "multipliers"), [
    ("winograd", Multipliers), ("inner", PairMultipliers), ("winograd_inner", PairMultipliers)])
def test_an_array_takes_products_in_their_cycle(array, multipliers):
    chosen = machine(2, 1, 2, 2, 8, array)
    with always_enabled() as elaborated:
        run_layers(MacUnit(chosen), chosen, layers_for(chosen, seed=4))
    assert multipliers in elaborated


def test_a_requantiser_takes_products_in_their_cycle():
    rng = random.Random(5)
    requests = [draw(rng) for draw in rng.choices(requantised.DRAWS, k=500)]
    expected = [numerics.requantise(**fields) for fields in requests]
    with always_enabled() as elaborated:
        requantised.check(Requantise(requantised.META), requests, expected, 0.5, rng)
    assert elaborated == {Product}


def test_a_residual_adder_takes_products_in_their_cycle():
    rng = random.Random(6)
    with always_enabled() as elaborated:
        added.check([added.batch(added.model, rng, 50) for _ in range(10)], gap=0.5, rng=rng)
    assert elaborated == {Product}
