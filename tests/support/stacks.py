"""Networks of several layers with seeded weights: VGG-like and ResNet-like, of any width and depth."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.compiler.network.layers import Layer, MaxPooling, Network, Requantisation, Residual, TensorInfo


@dataclass
class Stack:
    """Builds a network layer by layer; ``last`` names the newest tensor."""

    shape: tuple[int, int, int]
    seed: int = 0
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    last: str = "input"

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self._add("input", self.shape)

    def _add(self, name: str, shape: tuple[int, int, int]) -> None:
        self.tensors[name] = TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=0)
        self.last = name

    def conv(self, outputs: int, kernel: int, *, stride: int = 1, pad: int = 0,
             pool: tuple[int, int, int] | None = None, residual: str | None = None, source: str | None = None) -> str:
        """Append a convolution; a kernel of 0 is as large as the image. Return its output."""
        source, name = source or self.last, f"conv{len(self.layers)}"
        channels, height, width = self.tensors[source].shape
        kernel = kernel or height
        conv_shape = outputs, *((size + 2 * pad - kernel) // stride + 1 for size in (height, width))
        out_shape, window = conv_shape, None
        if pool:
            size, step, around = pool
            window = MaxPooling(kernel=(size, size), strides=(step, step), pads=(around,) * 4)
            out_shape = outputs, *((side + 2 * around - size) // step + 1 for side in conv_shape[1:])
        weights = self.rng.integers(-128, 128, (outputs, channels, kernel, kernel), dtype=np.int8)
        spread = 50 / (74 * 74 * (channels * kernel * kernel) ** 0.5)
        self.layers.append(Layer(
            name=name, kind="conv", onnx_nodes=(name,), input=source, output=name, in_shape=(channels, height, width),
            conv_shape=conv_shape, out_shape=out_shape, weights=weights,
            bias=self.rng.integers(-3000, 3000, outputs, dtype=np.int32), kernel=(kernel, kernel),
            strides=(stride, stride), pads=(pad,) * 4,
            requantisation=Requantisation(scale=(spread * self.rng.uniform(0.5, 2, outputs)).astype(np.float32),
                                          zero_point=0, low=0),
            residual=Residual(tensor=residual, scale_a=np.float32(0.7), scale_b=np.float32(0.9), zero_a=0, zero_b=0,
                              zero_out=0, low=0) if residual else None,
            pool=window))
        self._add(name, out_shape)
        return name

    def depthwise(self, kernel: int = 3, *, stride: int = 1, pad: int = 1) -> str:
        """Append a convolution of each channel by itself and return its output."""
        channels = self.tensors[self.last].shape[0]
        name = self.conv(channels, kernel, stride=stride, pad=pad)
        last = self.layers[-1]
        scale = last.requantisation.scale * np.float32(channels ** 0.5)
        self.layers[-1] = replace(last, groups=channels, weights=last.weights[:, :1],
                                  requantisation=replace(last.requantisation, scale=scale))
        return name

    def average(self) -> str:
        """Append a global average and return its output."""
        shape, name = self.tensors[self.last].shape, f"average{len(self.layers)}"
        channels, height, width = shape
        self.layers.append(Layer(
            name=name, kind="average", onnx_nodes=(name,), input=self.last, output=name, in_shape=shape,
            conv_shape=(channels, 1, 1), out_shape=(channels, 1, 1), weights=None, bias=np.zeros(channels, np.int32),
            kernel=(height, width), groups=channels,
            requantisation=Requantisation(scale=np.full(channels, 1 / (height * width), np.float32), zero_point=0)))
        self._add(name, (channels, 1, 1))
        return name

    def network(self, name: str) -> Network:
        """Return the network so far."""
        return Network(name=name, layers=tuple(self.layers), inputs=(self.tensors["input"],),
                       outputs=(self.tensors[self.last],), tensors=self.tensors)


def vgg(size: int, stages: Sequence[tuple[int, int]], hidden: Sequence[int]) -> Network:
    """Return (width, convolutions) ``stages`` of 3x3 convolutions with 2x2 pooling, and fully connected layers."""
    stack = Stack((3, size, size))
    for width, depth in stages:
        for index in range(depth):
            stack.conv(width, 3, pad=1, pool=(2, 2, 0) if index == depth - 1 else None)
    for width in hidden:
        stack.conv(width, 0)
    return stack.network(f"vgg {size}")


def resnet(size: int, widths: Sequence[int], depths: Sequence[int], *, bottleneck: bool = False,
           classes: int = 10) -> Network:
    """Return residual stages behind a 3x3 stem, or for images of 64 and more a 7x7 one with 3x3 pooling."""
    stack = Stack((3, size, size))
    if size >= 64:
        stack.conv(widths[0], 7, stride=2, pad=3, pool=(3, 2, 1))
    else:
        stack.conv(widths[0], 3, pad=1)
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        for index in range(depth):
            source, stride = stack.last, 2 if stage and index == 0 else 1
            outputs = 4 * width if bottleneck else width
            if bottleneck:
                stack.conv(width, 1)
            inner = stack.conv(width, 3, stride=stride, pad=1)
            if stride == 2 or stack.tensors[source].shape[0] != outputs:
                source = stack.conv(outputs, 1, stride=stride, source=source)
            stack.conv(outputs, 1 if bottleneck else 3, pad=0 if bottleneck else 1, residual=source, source=inner)
    stack.average()
    stack.conv(classes, 1)
    return stack.network(f"resnet {size}")


def two_readers(channels: int, size: int) -> Network:
    """Return a squeeze to 16 channels that a 1x1 and a 3x3 convolution read, whose results are added.

    If its result is also stored, it leaves the result buffer three times, while the next rows of its input are loaded.
    """
    stack = Stack((channels, size, size))
    squeezed = stack.conv(16, 1)
    points = stack.conv(64, 1)
    stack.conv(64, 3, pad=1, source=squeezed, residual=points)
    return stack.network(f"two readers {size}")


VGG16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
RESNET_WIDTHS = (64, 128, 256, 512)


def large_network(name: str) -> Network:
    """Return one of the networks of docs/architecture.md, with random weights."""
    return {
        "vgg16-224": lambda: vgg(224, VGG16, (4096, 4096, 1000)),
        "vgg16-32": lambda: vgg(32, VGG16, (10,)),
        "resnet18-224": lambda: resnet(224, RESNET_WIDTHS, (2, 2, 2, 2), classes=1000),
        "resnet18-32": lambda: resnet(32, RESNET_WIDTHS, (2, 2, 2, 2)),
        "resnet50-224": lambda: resnet(224, RESNET_WIDTHS, (3, 4, 6, 3), bottleneck=True, classes=1000),
    }[name]()
