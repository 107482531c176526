"""Additions behind tables: convolution, table and addition are one layer, which maps before it adds."""

import numpy as np
import pytest

from tests.compiler.passes.recognise.test_function_tables import activated
from tests.support.core_networks import inputs_of
from tests.support.exactness import assert_layers
from tests.support.execute import execute
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule.races import check
from tilewright.isa.machine import Machine, preset

TYPES = [(np.int8, 0), (np.int8, None), (np.uint8, None)]


def residual_block(dtype=np.int8, zero_point=None, *, swapped=False, read_twice=False, mapped_sum=False) -> bytes:
    """Return conv, SiLU's relative HardSwish, and the addition of what came before; the one or the other changed."""
    model = ModelBuilder("qdq", seed=5, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 4, 9, 10)), 12, pads=(1, 1, 1, 1))
    y = activated(model, "HardSwish", model.conv(x, 12, pads=(1, 1, 1, 1)), np.float32(0.02))
    z = model.add(x, y) if swapped else model.add(y, x)
    if mapped_sum:
        z = activated(model, "Tanh", z, np.float32(1 / 128))
    return model.finish(model.conv(z, 4), y) if read_twice else model.finish(model.conv(z, 4))


@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_an_addition_joins_the_table_before_it(dtype, zero_point):
    network = assert_layers(residual_block(dtype, zero_point))
    assert [(layer.table is not None, layer.residual is not None, layer.table_first) for layer in network.layers] == [
        (False, False, False), (True, True, True), (False, False, False)]


def test_operands_change_places_only_where_nothing_shows_it():
    network = assert_layers(residual_block(swapped=True))
    assert len(network.layers) in (3, 4)
    assert sum(layer.residual is not None for layer in network.layers) == 1


@pytest.mark.parametrize("first", ["3x3", "1x1"])
@pytest.mark.parametrize(("dtype", "zero_point"), TYPES)
def test_an_addition_joins_the_layer_with_more_products_in_a_sum(dtype, zero_point, first):
    """Whichever of the two is its first operand."""
    model = ModelBuilder("qdq", seed=7, dtype=dtype, zero_point=zero_point)
    x = model.conv(model.input((1, 4, 9, 10)), 12, pads=(1, 1, 1, 1))
    main, short = model.conv(x, 16, pads=(1, 1, 1, 1)), model.conv(x, 16, kernel=1)
    network = assert_layers(model.finish(model.add(main, short) if first == "3x3" else model.add(short, main)))
    assert [(layer.kernel, layer.residual is not None) for layer in network.layers[-2:]] == [
        ((1, 1), False), ((3, 3), True)]


def test_a_tensor_that_others_read_is_left_alone():
    network = assert_layers(residual_block(read_twice=True))
    assert not any(layer.table_first for layer in network.layers)
    assert len(network.layers) == 4


def test_a_sum_that_is_mapped_too_has_its_table_alone():
    network = assert_layers(residual_block(mapped_sum=True))
    assert not any(layer.table_first for layer in network.layers)
    assert sum(layer.table is not None for layer in network.layers) == 2


@pytest.mark.parametrize("machine", [
    preset("nano"), preset("base"), Machine(name="without adder", residual_adder=False),
    Machine(name="without tables", value_tables=False),
    Machine(name="neither", residual_adder=False, value_tables=False),
], ids=str)
def test_machines_compute_what_the_layers_say_whatever_they_leave_out(machine):
    network = assert_layers(residual_block())
    compiled = compile_layers(network, machine, keep_tensors=True)
    check((command for _, command in compiled.program.commands()), machine)
    complete = machine.residual_adder and machine.value_tables
    assert any(isinstance(layer, CoreLayer) for layer in compiled.network.layers) is not complete
    inputs = inputs_of(network)
    found = execute(compiled, inputs)
    for name, expected in run_network(network, inputs).items():
        np.testing.assert_array_equal(found[name], expected, err_msg=name)


def gated(dtype, zero_point) -> bytes:
    """Return the sum of a product of two vectors, of which the first is there before the second, and an output."""
    model = ModelBuilder("qdq", seed=6, dtype=dtype, zero_point=zero_point)
    x = model.input((1, 12, 1, 1))
    early, kept = (model.conv(x, 24, kernel=1) for _ in range(2))
    late = model.conv(model.conv(x, 24, kernel=1), 24, kernel=1)
    product = model.value((1, 24, 1, 1), np.float32(0.03), zero_point)
    model._operator("Mul", (early, late), product)
    return model.finish(model.conv(model.add(product, kept), 4, kernel=1), kept)


@pytest.mark.parametrize(("dtype", "zero_point", "joins"), [(np.int8, 0, True), (np.int8, 5, True),
                                                            (np.int8, -128, False)])
def test_an_addition_joins_a_product_of_vectors_that_is_not_negated(dtype, zero_point, joins):
    network = assert_layers(gated(dtype, zero_point))
    (product,) = (layer for layer in network.layers if layer.factor is not None)
    assert (product.residual is not None) is joins
    inputs = inputs_of(network)
    for machine in (preset("base"), Machine(name="without adder", residual_adder=False)):
        compiled = compile_layers(network, machine, keep_tensors=True)
        check((command for _, command in compiled.program.commands()), machine)
        found = execute(compiled, inputs)
        for name, expected in run_network(network, inputs).items():
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
