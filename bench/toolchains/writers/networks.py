"""Six small networks, said once for every builder: residual, depthwise, 1-D, U-Net, detector head, ViT block.

A builder has a method for each operator; `onnx_builder` makes an ONNX model of the calls, `torch_builder` a
module of torch, both with the same seeded weights. Nothing but NumPy is imported here, since tools import this too.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

__all__ = ["ATTENTION", "NETWORKS", "SHAPES", "Builder", "Weights", "samples"]

_SAMPLES = 16
_BIAS = 0.1

X = Any
"""A value of a builder."""


class Builder(Protocol):
    """The operators that the networks consist of; every method returns a value."""

    def conv(self, x: X, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> X:
        """Convolve in one or two dimensions, with a bias; half the kernel is padding, but none if kernel is stride."""

    def widen(self, x: X, channels: int) -> X:
        """Convolve transposed, by a kernel of 2 at stride 2."""

    def dense(self, x: X, outputs: int) -> X:
        """Multiply vectors, (1, n) or (1, tokens, n), and add a bias."""

    def function(self, x: X, name: str) -> X:
        """Apply relu, hard_swish, hard_sigmoid, silu, sigmoid or gelu to each element."""

    def max_pool(self, x: X) -> X:
        """Take the maxima of 2x2 pixels."""

    def average(self, x: X) -> X:
        """Average all pixels, which stay as one."""

    def enlarge(self, x: X) -> X:
        """Repeat each pixel, 2x2."""

    def add(self, x: X, y: X) -> X:
        """Add two values."""

    def times(self, x: X, y: X) -> X:
        """Multiply two values element by element."""

    def product(self, x: X, y: X, scale: float = 1.0) -> X:
        """Multiply matrices, and by a number."""

    def constant_added(self, x: X, shape: Sequence[int]) -> X:
        """Add weights."""

    def concat(self, values: Sequence[X], axis: int) -> X:
        """Put values one behind the other."""

    def reshape(self, x: X, shape: Sequence[int]) -> X:
        """Change the shape."""

    def transpose(self, x: X, perm: Sequence[int]) -> X:
        """Change the order of dimensions."""

    def softmax(self, x: X, axis: int) -> X:
        """Take the softmax along an axis."""

    def norm(self, x: X) -> X:
        """Normalise the last dimension, with a gain and a shift."""

    def mean(self, x: X, axis: int) -> X:
        """Average along an axis, which goes."""

    def fixed(self, x: X, weights: np.ndarray) -> X:
        """Convolve with a 1x1 kernel of given ``weights``, without a bias."""


class Weights:
    """Seeded weights, He-normal, in the order in which they are asked for."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def kernel(self, shape: Sequence[int], inputs: int) -> np.ndarray:
        """Return float32 weights of ``shape``, ``inputs`` of which are summed up."""
        return (self._rng.standard_normal(tuple(shape)) * np.sqrt(2 / inputs)).astype(np.float32)

    def bias(self, count: int) -> np.ndarray:
        """Return ``count`` small numbers."""
        return (self._rng.standard_normal(count) * _BIAS).astype(np.float32)


def samples(shape: Sequence[int], seed: int = 1) -> np.ndarray:
    """Return smooth random images, float32 of (samples, *shape without batch)."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal((_SAMPLES, *shape[1:]))
    for axis in range(2, found.ndim):
        found = (found + np.roll(found, 1, axis) + np.roll(found, -1, axis)) / np.sqrt(3)
    return found.astype(np.float32)


def _residual(net: Builder, x: X) -> X:
    x = net.function(net.conv(x, 16, 3), "relu")
    for channels, stride in ((16, 1), (32, 2), (48, 2)):
        y = net.function(net.conv(x, channels, 3, stride), "relu")
        y = net.conv(y, channels, 3)
        x = x if stride == 1 else net.conv(x, channels, 1, stride)
        x = net.function(net.add(y, x), "relu")
    return net.dense(net.reshape(net.average(x), (1, 48)), 10)


def _depthwise(net: Builder, x: X) -> X:
    x = net.function(net.conv(x, 16, 3, 2), "hard_swish")
    for wide, narrow, stride in ((48, 24, 2), (72, 24, 1)):
        y = net.function(net.conv(x, wide, 1), "hard_swish")
        y = net.function(net.conv(y, wide, 3, stride, groups=wide), "hard_swish")
        gate = net.function(net.conv(net.average(y), wide // 4, 1), "relu")
        gate = net.function(net.conv(gate, wide, 1), "hard_sigmoid")
        y = net.conv(net.times(y, gate), narrow, 1)
        x = y if stride > 1 else net.add(x, y)
    x = net.function(net.conv(x, 64, 1), "hard_swish")
    return net.dense(net.reshape(net.average(x), (1, 64)), 10)


def _keywords(net: Builder, x: X) -> X:
    x = net.function(net.conv(x, 32, 5, 2), "relu")
    for channels in (32, 48, 48):
        x = net.function(net.conv(x, channels, 1), "relu")
        x = net.function(net.conv(x, channels, 3, groups=channels), "relu")
    return net.dense(net.reshape(net.average(x), (1, 48)), 12)


def _unet(net: Builder, x: X) -> X:
    top = net.function(net.conv(x, 8, 3), "relu")
    middle = net.function(net.conv(net.max_pool(top), 16, 3), "relu")
    x = net.function(net.conv(net.max_pool(middle), 32, 3), "relu")
    x = net.function(net.conv(net.concat((net.widen(x, 16), middle), 1), 16, 3), "relu")
    x = net.function(net.conv(net.concat((net.enlarge(x), top), 1), 8, 3), "relu")
    return net.function(net.conv(x, 1, 1), "sigmoid")


def _detector(net: Builder, x: X) -> X:
    for channels in (16, 24, 32):
        x = net.function(net.conv(x, channels, 3, 2), "silu")
    boxes = net.conv(net.function(net.conv(x, 32, 3), "silu"), 32, 1)
    bins = net.transpose(net.reshape(boxes, (1, 4, 8, 64)), (0, 2, 1, 3))
    sides = net.fixed(net.softmax(bins, 1), np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1))
    classes = net.conv(net.function(net.conv(x, 24, 3), "silu"), 6, 1)
    scores = net.function(net.reshape(classes, (1, 6, 64)), "sigmoid")
    return net.concat((net.reshape(sides, (1, 4, 64)), scores), 1)


def _vit(net: Builder, x: X) -> X:
    x = net.conv(x, 48, 4, 4)
    x = net.constant_added(net.transpose(net.reshape(x, (1, 48, 64)), (0, 2, 1)), (1, 64, 48))
    y = net.norm(x)
    heads = [net.transpose(net.reshape(net.dense(y, 48), (1, 64, 3, 16)), perm)
             for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))]
    weights = net.softmax(net.product(heads[0], heads[1], 0.25), -1)
    y = net.reshape(net.transpose(net.product(weights, heads[2]), (0, 2, 1, 3)), (1, 64, 48))
    x = net.add(x, net.dense(y, 48))
    y = net.dense(net.function(net.dense(net.norm(x), 96), "gelu"), 48)
    x = net.norm(net.add(x, y))
    return net.dense(net.mean(x, 1), 10)


NETWORKS: dict[str, Callable[[Builder, X], X]] = {
    "residual": _residual, "depthwise": _depthwise, "keywords": _keywords, "unet": _unet, "detector": _detector,
    "vit": _vit}
"""By name: a function of a builder and the input."""

ATTENTION = frozenset({"vit"})
"""Names of those that need attention and LayerNorm."""

SHAPES = {"residual": (1, 3, 32, 32), "depthwise": (1, 3, 32, 32), "keywords": (1, 40, 96), "unet": (1, 1, 32, 32),
          "detector": (1, 3, 64, 64), "vit": (1, 3, 32, 32)}
"""Shapes of their inputs."""
