"""Only those pixels that something reads are computed, and what is read keeps its bits."""

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Layer, Place, TensorInfo
from tilewright.compiler.network.parts.needed_pixels import _Reads, with_needed_pixels
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS

TOKENS, SIZE = 12, 32


def of_tokens(chosen, *, hidden_too=False):
    """Return the network of some of 12 tokens behind two products and a sum; perhaps the sum is an output, too."""
    model = ModelBuilder("qdq", seed=3)
    x = model.input((1, TOKENS, SIZE))
    hidden = model.add(model.matmul(x, SIZE), x)
    last = model.matmul(hidden, 24)
    numbers = [model.constant(np.array([each])) for each in (chosen.start, chosen.stop, 1, chosen.step)]
    part = model.moved("Slice", last, (1, len(chosen), 24), tuple(numbers))
    return compile_network(model.finish(part, *([hidden] if hidden_too else [])))


def inputs_of(network):
    rng = np.random.default_rng(2)
    return {info.name: rng.integers(-128, 128, info.shape).astype(np.int8) for info in network.inputs}


def widths(network):
    return [layer.conv_shape[2] for layer in network.layers if isinstance(layer, Layer) and layer.weights is not None]


@pytest.mark.parametrize("chosen", [range(1), range(10, 12), range(1, 12, 5)], ids=str)
@pytest.mark.parametrize("machine", ["nano", "base"])
def test_products_have_the_tokens_that_are_read(machine, chosen):
    whole = of_tokens(chosen)
    assert widths(whole) == [TOKENS, TOKENS]
    fewer = with_needed_pixels(whole)
    assert widths(fewer) == [len(chosen), len(chosen)]
    inputs, (output,) = inputs_of(whole), whole.outputs
    expected = run_network(whole, inputs)[output.name]
    np.testing.assert_array_equal(run_network(fewer, inputs)[output.name], expected)
    compiled = compile_layers(whole, PRESETS[machine])
    assert compiled.network.macs * TOKENS == whole.macs * len(chosen)
    np.testing.assert_array_equal(execute(compiled, inputs)[output.name], expected)


def test_tokens_that_are_apart_unevenly_are_those_between_too():
    model = ModelBuilder("qdq", seed=3)
    last = model.matmul(model.input((1, TOKENS, SIZE)), 24)
    part = model.moved("Gather", last, (1, 3, 24), (model.constant(np.array([2, 3, 7])),), axis=1)
    assert widths(with_needed_pixels(compile_network(model.finish(part)))) == [6]


def test_what_is_read_whole_stays_whole():
    network = of_tokens(range(1), hidden_too=True)
    assert widths(with_needed_pixels(network)) == [TOKENS, 1]
    whole = of_tokens(range(TOKENS))
    assert with_needed_pixels(whole) is whole


def test_reads_of_whole_sums_are_counted_in_bytes_and_stay_within_them():
    sums = TensorInfo(name="sums", shape=(3, 1, 5), scale=1.0, zero_point=0, dtype="float32")
    parts = TensorInfo(name="sums bytes", shape=(12, 1, 5), scale=1.0, zero_point=0,
                       place=Place(parent="sums", offset=0, row_step=60, pixel_step=12))
    reads = _Reads({each.name: each for each in (sums, parts)})
    for info in (sums, parts):
        view = reads.of(info)
        assert view.shape == (1, 1, 5, 12)
        assert view[0, 0, -1, -1:].__array_interface__["data"][0] - reads.masks["sums"].ctypes.data == 59
    assert reads.masks["sums"].size == 60
    reads.of(sums)[...] = True
    assert reads.of(parts).all()
