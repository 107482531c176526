"""Attention in windows: stacks of matrices of several axes are one stack, with the same results, off the host core."""

import numpy as np
import pytest

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer, Layer

SCALE = np.float32(0.02)


def turned(model, x, perm):
    return model.moved("Transpose", x, tuple(x.shape[axis] for axis in perm), perm=perm)


def windows(bias, mask=False, softmax=False):
    """Return a model of 3 windows of 2 heads: a product of rows, a constant ``bias``, perhaps a mask, a product."""
    model = ModelBuilder("qdq", seed=7, zero_point=None)
    lead, rows, width = (3, 2), 6, 8

    def heads(x):
        """Return rows of a line of tokens as heads of windows."""
        apart = model.reshape(x, (3, rows, 2, width))
        return turned(model, apart, (0, 2, 1, 3))

    tokens = [heads(model.matmul(model.input((18, 12)), 2 * width)) for _ in range(3)]

    def added(x, shape):
        levels = model.rng.integers(-90, 90, shape).astype(np.int8)
        constants = [model.constant(each) for each in (levels, SCALE, np.int8(3))]
        out = model.value((*x.shape,), np.float32(0.05))
        number = len(model.nodes)
        constant = model.node("DequantizeLinear", constants, f"addend{number}")
        model.quantised(model.node("Add", [model.dequantised(x), constant], f"sum{number}"), out)
        return out

    keys = turned(model, tokens[1], (0, 1, 3, 2))
    scores = model.value((*lead, rows, rows), np.float32(0.04))
    model.quantised(model.node("MatMul", [model.dequantised(each) for each in (tokens[0], keys)], "scores"), scores)
    scores = added(scores, bias)
    if mask:
        scores = model.reshape(added(model.reshape(scores, (1, *scores.shape)), (1, 3, 1, rows, rows)), scores.shape)
    if softmax:
        chances = model.value(scores.shape, np.float32(1 / 256), -128)
        model.quantised(model.node("Softmax", [model.dequantised(scores)], "chances", axis=-1), chances)
        scores = chances
    out = model.value((*lead, rows, width), np.float32(0.02 if softmax else 0.4))
    model.quantised(model.node("MatMul", [model.dequantised(each) for each in (scores, tokens[2])], "mixed"), out)
    joined = model.reshape(turned(model, out, (0, 2, 1, 3)), (18, 16))
    return assert_layers(model.finish(model.matmul(joined, 5)))


@pytest.mark.parametrize("bias", [(1, 2, 6, 6), (3, 2, 6, 6), (6, 6), (1, 1, 6, 6), (3, 1, 1, 6), ()])
def test_every_window_gets_its_part_of_a_constant(bias):
    layers = windows(bias).layers
    assert all(isinstance(layer, Layer) for layer in layers)


def test_masks_and_softmax_between_them_are_taken_along():
    layers = windows((1, 2, 6, 6), mask=True, softmax=True).layers
    assert [layer.op for layer in layers if isinstance(layer, CoreLayer)] == ["SoftmaxOfLevels"]
