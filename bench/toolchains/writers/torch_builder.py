"""The networks as modules of torch, with the weights of the ONNX models; a subclass says what its layers are."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from tilewright.bench.toolchains.writers.networks import NETWORKS, SHAPES, Weights

__all__ = ["TorchNetwork", "calibrated"]

_FUNCTIONS = {"relu": nn.ReLU, "hard_swish": nn.Hardswish, "hard_sigmoid": nn.Hardsigmoid, "silu": nn.SiLU,
              "sigmoid": nn.Sigmoid, "gelu": nn.GELU}


class TorchNetwork(nn.Module):
    """One of `tilewright.bench.toolchains.writers.networks.NETWORKS`.

    The first pass makes the layers in the order in which it comes to them, and every other uses them in this order.

    Parameters
    ----------
    name : str
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        self._name, self._weights, self._next, self._made = name, Weights(), 0, False
        self.eval()
        with torch.no_grad():
            self(torch.zeros(SHAPES[name]))
        self._made = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the network's result."""
        self._next = 0
        return self.result(NETWORKS[self._name](self, self.given(x)))

    # ---- what a tool puts in place of torch's own

    def make_conv(self, inputs: int, channels: int, kernel: int, stride: int, pad: int, groups: int,
                  dims: int) -> nn.Module:
        """Return a convolution of one or two dimensions."""
        kind = nn.Conv1d if dims == 1 else nn.Conv2d
        return kind(inputs, channels, kernel, stride, pad, groups=groups)

    def make_widen(self, inputs: int, channels: int) -> nn.Module:
        """Return a transposed convolution."""
        return nn.ConvTranspose2d(inputs, channels, 2, 2)

    def make_dense(self, inputs: int, outputs: int) -> nn.Module:
        """Return a linear layer."""
        return nn.Linear(inputs, outputs)

    def make_function(self, name: str) -> nn.Module:
        """Return an activation."""
        return _FUNCTIONS[name]()

    def given(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input as the layers take it."""
        return x

    def result(self, x: torch.Tensor) -> torch.Tensor:
        """Return what layers give as a tensor."""
        return x

    def joined(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return values that are to be added, multiplied or concatenated."""
        return values

    # ---- a builder's methods

    def conv(self, x: torch.Tensor, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> torch.Tensor:
        if not self._made:
            dims, inputs = x.ndim - 2, x.shape[1]
            pad = 0 if kernel == stride else kernel // 2
            layer = self.make_conv(inputs, channels, kernel, stride, pad, groups, dims)
            shape = (channels, inputs // groups, *(kernel,) * dims)
            self._load(layer, self._weights.kernel(shape, inputs // groups * kernel**dims),
                       self._weights.bias(channels))
        return self._layer()(x)

    def widen(self, x: torch.Tensor, channels: int) -> torch.Tensor:
        if not self._made:
            inputs = x.shape[1]
            self._load(self.make_widen(inputs, channels), self._weights.kernel((inputs, channels, 2, 2), inputs),
                       self._weights.bias(channels))
        return self._layer()(x)

    def dense(self, x: torch.Tensor, outputs: int) -> torch.Tensor:
        if not self._made:
            inputs = x.shape[-1]
            self._load(self.make_dense(inputs, outputs), self._weights.kernel((outputs, inputs), inputs),
                       self._weights.bias(outputs))
        return self._layer()(x)

    def function(self, x: torch.Tensor, name: str) -> torch.Tensor:
        if not self._made:
            self.layers.append(self.make_function(name))
        return self._layer()(x)

    def max_pool(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.max_pool2d(x, 2)

    def average(self, x: torch.Tensor) -> torch.Tensor:
        if x.ndim == 3:
            return nn.functional.adaptive_avg_pool1d(x, 1)
        return nn.functional.adaptive_avg_pool2d(x, 1)

    def enlarge(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x, scale_factor=2, mode="nearest")

    def add(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first, second = self.joined(x, y)
        return first + second

    def times(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first, second = self.joined(x, y)
        return first * second

    def product(self, x: torch.Tensor, y: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        z = torch.matmul(*self.joined(x, y))
        return z if scale == 1 else z * scale

    def constant_added(self, x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        if not self._made:
            self.register_buffer("position", torch.from_numpy(self._weights.kernel(shape, 50)))
        return x + self.position

    def concat(self, values: Sequence[torch.Tensor], axis: int) -> torch.Tensor:
        return torch.cat(self.joined(*values), axis)

    def reshape(self, x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        return x.reshape(tuple(shape))

    def transpose(self, x: torch.Tensor, perm: Sequence[int]) -> torch.Tensor:
        return x.permute(tuple(perm))

    def softmax(self, x: torch.Tensor, axis: int) -> torch.Tensor:
        return torch.softmax(x, axis)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        if not self._made:
            count = x.shape[-1]
            self._load(nn.LayerNorm(count), 1 + self._weights.bias(count), self._weights.bias(count))
        return self._layer()(x)

    def mean(self, x: torch.Tensor, axis: int) -> torch.Tensor:
        return x.mean(axis)

    def fixed(self, x: torch.Tensor, weights: np.ndarray) -> torch.Tensor:
        if not self._made:
            layer = nn.Conv2d(weights.shape[1], weights.shape[0], 1, bias=False)
            layer.weight.data = torch.from_numpy(weights)
            self.layers.append(layer)
        return self._layer()(x)

    def _load(self, layer: nn.Module, weights: np.ndarray, bias: np.ndarray) -> None:
        layer.weight.data = torch.from_numpy(weights)
        layer.bias.data = torch.from_numpy(bias)
        self.layers.append(layer)

    def _layer(self) -> nn.Module:
        self._next += 1
        return self.layers[self._next - 1]


def calibrated(module: nn.Module, samples: np.ndarray) -> None:
    """Run samples through a module, one by one."""
    with torch.no_grad():
        for sample in samples:
            module(torch.from_numpy(sample[None]))
