"""Phases of a resize are its outputs, each once, and their integer weights as near to the real ones as they say."""

import numpy as np
import pytest

from tilewright.compiler.kernels.language.neighbours import cubic, linear, originals
from tilewright.compiler.network.interpolation import AxisPhase, Interpolation, axis_phases, fixed_weights
from tilewright.compiler.network.layers import Layer, Requantisation, TensorInfo
from tilewright.compiler.network.places import SliceMove
from tilewright.compiler.network.reference import run_layer

SIZES = [(5, 10), (4, 16), (10, 13), (12, 6), (9, 3), (7, 7), (1, 6), (6, 1), (13, 5)]


def dense(dim, places, weights):
    """Return the matrix that makes the outputs of an axis of its ``dim`` inputs."""
    matrix = np.zeros((places.shape[1], dim))
    for place, weight in zip(places, weights, strict=True):
        np.add.at(matrix, (np.arange(places.shape[1]), place), weight)
    return matrix


def of_phases(dim, size, phases):
    matrix = np.full((size, dim), np.nan)
    for phase in phases:
        for n in range(phase.count):
            row = matrix[phase.first + n * phase.step]
            assert np.isnan(row).all(), "an output is in one phase only"
            row[:] = 0
            at = phase.start + n * phase.stride
            row[at:at + len(phase.weights)] = phase.weights
    return matrix


@pytest.mark.parametrize(("dim", "size"), SIZES)
@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_phases_are_the_outputs_of_an_axis(kind, mode, dim, size):
    x = originals(mode, dim, size, np.float32(size / dim))
    places, weights = linear(x, dim) if kind == "linear" else cubic(x, np.float32(-0.75))
    places = np.clip(places, 0, dim - 1)
    phases = axis_phases(places, weights)
    np.testing.assert_allclose(of_phases(dim, size, phases), dense(dim, places, weights), atol=2e-4)


def test_an_enlargement_has_as_many_phases_as_its_factor():
    x = originals("half_pixel", 32, 64, np.float32(2))
    places = np.stack([np.floor(x), np.floor(x) + 1]).astype(np.int64)
    phases = axis_phases(places, np.stack([1 - (x - places[0]), x - places[0]]))
    assert [(phase.first, phase.step, phase.count, phase.start, phase.stride, phase.weights) for phase in phases] == [
        (0, 2, 32, -1, 1, (0.25, 0.75)), (1, 2, 32, 0, 1, (0.75, 0.25))]


def axis(*weights):
    return AxisPhase(0, 1, 1, 0, 1, weights)


def test_weights_that_are_fractions_are_exact():
    found = fixed_weights(axis(0.25, 0.75), axis(0.25, 0.75), 1, 0, 1.0, False)
    assert (found.levels.tolist(), found.denominator, found.error) == ([[1, 3], [3, 9]], 16, 0)
    even = fixed_weights(axis(0.25, 0.75), axis(0.25, 0.75), 1, 0, 1.0, True)
    assert (even.levels.tolist(), even.denominator, even.error) == ([[2, 6], [6, 18]], 32, 0)


@pytest.mark.parametrize("zero_point", [-128, 0, 77])
@pytest.mark.parametrize("copies", [1, 2, 4])
def test_the_error_is_the_largest_that_any_pixels_make(copies, zero_point):
    rng = np.random.default_rng(7)
    for _ in range(20):
        a, b = rng.uniform(0, 1, 2)
        rows, columns = axis(a, 1 - a), axis(b, 1 - b)
        found = fixed_weights(rows, columns, copies, zero_point, 1.5, False)
        merged = found.levels.reshape(2, 2, copies).sum(axis=2)
        off = 1.5 * (merged / found.denominator - np.outer(rows.weights, columns.weights))
        pixels = [np.where(sign * off > 0, 127 - zero_point, -128 - zero_point) for sign in (1, -1)]
        worst = max(abs(float((each * off).sum())) for each in pixels)
        assert found.error == pytest.approx(worst, rel=1e-6, abs=1e-9)


def test_more_copies_of_a_column_come_nearer():
    rows, columns = axis(*[-0.1, 0.88, 0.26, -0.04]), axis(*[-0.07, 0.71, 0.43, -0.07])
    errors = [fixed_weights(rows, columns, copies, 0, 1.0, False).error for copies in (1, 2, 8)]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("down", [False, True])
def test_layers_weigh_and_round(down):
    rng = np.random.default_rng(3)
    x = rng.integers(-128, 128, (2, 4, 5), dtype=np.int8)
    places, weights = linear(originals("asymmetric", 4, 8, np.float32(2)), 4)
    rows = axis_phases(places, weights)
    columns = (AxisPhase(0, 1, 5, 0, 1, (1.0,)),)
    source, output = (TensorInfo(name=name, shape=shape, scale=np.float32(0.5), zero_point=3)
                      for name, shape in (("x", (2, 4, 5)), ("y", (2, 8, 5))))
    steps, tensors = Interpolation(
        name="up", onnx_nodes=("up",), source=source, output=output, rows=rows, columns=columns, copies=1, down=down,
        requantisation=Requantisation(scale=np.ones(1, np.float32), zero_point=3)).steps()
    found = np.full(x.size * 2, 1000)
    for layer in (step for step in steps if isinstance(step, Layer)):
        piece = next((x[:, move.starts[1]:move.starts[1] + layer.in_shape[1]] for move in steps
                      if isinstance(move, SliceMove) and move.output == layer.input), x)
        place = tensors[layer.output].place
        for (c, i, j), value in np.ndenumerate(run_layer(layer, piece)):
            found[place.offset + i * place.row_step + j * place.pixel_step + c] = value
    real = np.einsum("oi,cij->coj", dense(4, places, weights), x.astype(float))
    expected = np.floor(real) if down else np.rint(real - 3) + 3
    np.testing.assert_array_equal(found.reshape(8, 5, 2).transpose(2, 0, 1), expected)


def test_symmetric_half_pixels_are_of_float64_as_in_onnx_runtime():
    """In float32 they would lie at 1 and 4, and no pixel would be cut off."""
    x = originals("half_pixel_symmetric", 6, 2, np.float32(1 / 3))
    assert x.dtype == np.float32
    assert [float(each) for each in x] == [0.9999999403953552, 3.999999761581421]
