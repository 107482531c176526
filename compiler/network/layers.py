"""The input of the back end: a network of fused layers, each one pass through the datapath.

A layer computes, for every output channel o::

    acc = Σ x · w + bias                         x and w int8, int32 sum; outside the image x is pad_value
    q   = clamp(rne(fl32(acc) · scale) + zero_point)                      (isa.numerics.requantise)
    q   = residual add of q and another tensor, if there is one           (isa.numerics.add_residual)
    q   = table[q + 128], if there is one; with ``table_first`` before the residual add
    q   = maximum over a window, if there is one
    q   = the softmax of a pixel's channels, if there is one                 (isa.rows.row_softmax.softmax_row)

or, of a ``whole`` layer, the four bytes of acc in place of q.

Shapes are (channels, height, width); a vector of n is (n, 1, 1). Pads are (top, left, bottom, right).
Everything is exact in integers and float32, so each tensor equals ONNX Runtime's bit for bit.

An operator that the datapath lacks is a :class:`CoreLayer`, which the host core computes in C, in main memory.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from tilewright.compiler.kernels.preparation import PreparationStep
from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.network.layer_uses import NO_WORDS, ComputedScale, StageUse, UnitUse, WordPlanes
from tilewright.compiler.network.tensor_place import AbsentChannels, ByteSteps, Place
from tilewright.isa.machine import SUM_BYTES
from tilewright.isa.numerics import ResidualSettings
from tilewright.isa.program import DTYPES
from tilewright.isa.rows.row_norm import RowNorm
from tilewright.isa.rows.row_softmax import RowSoftmax

__all__ = [
    "NEGATED_ZERO",
    "AbsentChannels",
    "AnyLayer",
    "ByteSteps",
    "ChannelFactor",
    "ChannelScales",
    "ComputedScale",
    "CoreLayer",
    "Kind",
    "Layer",
    "MatrixFactor",
    "MaxPooling",
    "Network",
    "Pads",
    "Pair",
    "Place",
    "Requantisation",
    "Residual",
    "Shape",
    "StageUse",
    "TensorInfo",
    "UnitUse",
    "UnreadInput",
    "WordPlanes",
]

Shape = tuple[int, int, int]
Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
Kind = Literal["conv", "average", "pass"]

NEGATED_ZERO = -128
"""Zero point of a computed factor that is negated, so that two int8 halves hold each of its nine bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requantisation:
    """From an int32 sum to int8, as ONNX Runtime does, or in whole numbers.

    ``scale`` is float32 of shape (O,): x_scale · w_scale / y_scale per output channel. ``low`` and ``high``
    bound the int8 result and hold the ReLU or clip that followed. With ``integers`` these take the place of the scale,
    which is about the same.
    """

    scale: np.ndarray
    zero_point: int
    low: int = -128
    high: int = 127
    integers: IntegerScale | LongScale | None = None

    def of_channels(self, chosen: Any) -> "Requantisation":
        """Return that of some channels, by what indexes an array."""
        return replace(self, scale=np.ascontiguousarray(self.scale[chosen]),
                       integers=self.integers and self.integers.of_channels(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """Addition of another tensor to the layer's own requantised value.

    a is the first operand and b the second: ``scale_a`` is float32(its scale / output scale), ``scale_b`` likewise.
    ONNX Runtime's sum is not symmetric: it rounds the second operand's product by itself and fuses the first's. The
    layer's own value is the first, the residual the second, and the other way round with ``own_second``.

    All values and zero points are int8. With ``unsigned`` the model's were uint8, 128 more each.
    """

    tensor: str
    scale_a: np.float32
    scale_b: np.float32
    zero_a: int
    zero_b: int
    zero_out: int
    low: int = -128
    high: int = 127
    unsigned: bool = False
    own_second: bool = False

    @property
    def settings(self) -> ResidualSettings:
        """The same in the numbers of the datapath.

        Raises
        ------
        ValueError
            If a scale or the offset is outside what they hold.
        """
        return ResidualSettings.of(float(self.scale_a), float(self.scale_b),
                                   (self.zero_a, self.zero_b, self.zero_out),
                                   unsigned=self.unsigned, low=self.low, high=self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFactor:
    """A vector that the network computes, and by which a layer multiplies its input channel by channel.

    The layer is a depthwise convolution of one pixel whose weights are ``tensor``, int8 of (C, 1, 1), less its
    ``zero_point``; ``negated`` are their negatives, so that two int8 halves always hold the nine bits.

    ``weights`` and ``parameters`` name the tensors in which the same lie as ``ldw`` loads them for one machine
    (``compiler.network.factors.factor_images``), ``""`` as long as there are none; without zero point of the input, the
    parameters are constants.
    """

    tensor: str
    zero_point: int
    negated: bool = False
    weights: str = ""
    parameters: str = ""

    @property
    def halves(self) -> int:
        """Number of int8 weights that a factor takes."""
        return 1 if self.zero_point == 0 else 2

    @property
    def images(self) -> tuple[str, ...]:
        """The tensors that are loaded in place of constant weights and parameters."""
        return tuple(name for name in (self.weights, self.parameters) if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFactor:
    """A matrix that the network computes, and whose rows are the weights of a 1x1 convolution: one for each output.

    The rows are the pixels of ``tensor``, int8 of (inputs, 1, outputs), each less the ``zero_point``; ``negated`` are
    their negatives. A byte of the matrix and a constant always hold the nine bits: w - z = w + (-z), and for z = -128
    z - w = ~w + (1 + z). With a zero point they are two taps of the kernel, at one and the same pixel.

    ``weights`` and ``parameters`` name tensors as those of a :class:`ChannelFactor` do
    (``compiler.network.factors.matrix_images``). The ``raw`` sums are those of these bytes, without the input's zero
    point; with ``pairs``, the products of each two neighbouring weights are in them, as an array of inner products
    leaves them. Where two taps would take too much of the weight memory, the input has its channels ``twice`` instead,
    each time up to a multiple of 16.

    With ``packed``, the clusters of an array and the lanes of each, ``tensor`` holds the words that it loads.
    """

    tensor: str
    zero_point: int
    negated: bool = False
    weights: str = ""
    parameters: str = ""
    raw: bool = False
    pairs: bool = False
    twice: bool = False
    packed: Pair | None = None

    @property
    def halves(self) -> int:
        """Number of int8 weights that an element takes."""
        return 1 if self.zero_point == 0 else 2

    @property
    def constant(self) -> int:
        """The second of these weights."""
        return 1 + self.zero_point if self.negated else -self.zero_point

    @property
    def images(self) -> tuple[str, ...]:
        """The tensors that are loaded in place of constant weights and parameters."""
        return tuple(name for name in (self.weights, self.parameters) if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPooling:
    """Maximum over a window; outside the image is -128, which never wins."""

    kernel: Pair
    strides: Pair
    pads: Pads


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """One fused layer.

    ``table``, int8 of shape (256,), maps each value before the pooling: element 128 + q is what q becomes; of results
    of 16 bits it is their curve, int8 of shape (1024,). With
    a ``stage`` it holds the parameters of that instead. A ``unit`` works on the input before anything else. ``also``
    names further tensors, each with a place in a larger one, to which the same result is stored. ``exact`` tells
    whether ONNX Runtime's own result is reproducible; where not, it computes in float and may differ by one level.

    ``kind`` says what is summed: ``conv`` a convolution, with its ``weights``, int8 of shape
    (O, C // groups, kernel height, kernel width), or int16 with some beyond int8; ``average`` the window of each
    channel by itself, 1 / count being part of the scale; ``pass`` nothing, acc = x + bias, for max pooling, ReLU or
    addition on their own. ``groups`` is C for the latter two, and their ``weights`` None. So they are for a convolution
    with a ``factor``, which takes its place and that of the bias; each half of it is a tap of the kernel, at one and
    the same pixel. It is a vector for a depthwise convolution, or a matrix for one of a single group.

    ``bias``, int32 of shape (O,), holds the input's zero point already: x is the raw int8 value.
    ``pad_value`` is that zero point. ``conv_shape`` is the shape before the max pooling, ``out_shape`` after it.
    A fully connected layer is a convolution whose kernel is as large as its input.

    With ``early_weights`` it finds weights, parameters and table on the chip: an earlier layer loads the same, or there
    is time to load them.

    A ``whole`` layer leaves its sums themselves: ``out_shape`` has four channels, the bytes of an int32, for each of
    ``conv_shape``; nothing follows the sums, and the scales are 1.

    Of ``words`` of 16 bits, x is 256 times the upper byte and the lower one, whose 128 less is in the bias;
    ``pad_value`` is a word, and so are zero point and bounds. Nothing follows the requantisation to words.

    With several ``images`` the three shapes are of all of them, one below the other: (channels, images · height,
    width), and each image is computed by itself, with its own padding (`compiler.batch.in_batch`).
    """

    name: str
    kind: Kind
    onnx_nodes: tuple[str, ...]
    input: str
    output: str
    in_shape: Shape
    conv_shape: Shape
    out_shape: Shape
    weights: np.ndarray | None
    bias: np.ndarray
    kernel: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    groups: int = 1
    pad_value: int = 0
    requantisation: Requantisation
    residual: Residual | None = None
    factor: ChannelFactor | ComputedScale | MatrixFactor | None = None
    table: np.ndarray | None = None
    stage: StageUse | None = None
    unit: UnitUse | None = None
    pool: MaxPooling | None = None
    rows: RowSoftmax | RowNorm | None = None
    table_first: bool = False
    whole: bool = False
    words: WordPlanes = NO_WORDS
    also: tuple[str, ...] = ()
    exact: bool = True
    images: int = 1
    early_weights: bool = False

    @property
    def weight_parts(self) -> tuple[np.ndarray, ...]:
        """The weights as int8 arrays whose sum they are: one, or more, of which those behind it are mostly zero."""
        if self.weights is None or self.weights.dtype == np.int8:
            return () if self.weights is None else (self.weights,)
        parts: list[np.ndarray] = []
        left = self.weights
        while not parts or left.any():
            parts.append(np.clip(left, -128, 127).astype(np.int8))
            left = left - parts[-1]
        return tuple(parts)

    @property
    def span(self) -> Pair:
        """Rows and columns from the first tap of a kernel to its last."""
        rows, columns = ((taps - 1) * step + 1 for taps, step in zip(self.kernel, self.dilations, strict=True))
        return rows, columns

    @property
    def value_bytes(self) -> int:
        """Bytes that each sum leaves."""
        return SUM_BYTES if self.whole else 1

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that the layer reads."""
        factor = (self.factor.tensor, *self.factor.images) if self.factor else ()
        residual = (self.residual.tensor,) if self.residual else ()
        return (self.input, *self.words.also_read, *residual, *factor)

    @property
    def writes(self) -> tuple[str, ...]:
        """The tensors that the layer writes."""
        return (self.output, *self.words.also_written, *self.also)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the ONNX operator, zeros of the padding included; 0 without weights."""
        if isinstance(self.factor, MatrixFactor):
            inputs = self.in_shape[0] // (2 if self.factor.twice else 1)
            return 0 if self.factor.raw else math.prod(self.conv_shape) * inputs
        if self.factor is not None:
            return math.prod(self.conv_shape)
        if self.weights is None:
            return 0
        return math.prod(self.conv_shape) * math.prod(self.weights.shape[1:])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoreLayer:
    """One ONNX operator that the host core computes in C; see ``compiler.kernels``.

    ``inputs`` name tensors or constants of the network, ``""`` where one is absent. ``attrs`` are ONNX's.
    ``reason`` says in a phrase why the datapath does not compute it. ``exact`` as for :class:`Layer`. ``macs`` are
    the operator's multiply-accumulates, if it is one that has them.
    """

    name: str
    onnx_nodes: tuple[str, ...]
    op: str
    inputs: tuple[str, ...]
    output: str
    attrs: Mapping[str, Any]
    reason: str
    exact: bool = True
    macs: int = 0

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors and constants that the layer reads."""
        return tuple(dict.fromkeys(name for name in self.inputs if name))

    @property
    def writes(self) -> tuple[str, ...]:
        """The tensors that the layer writes."""
        return (self.output,)


AnyLayer = Layer | CoreLayer


@dataclass(frozen=True, slots=True)
class ChannelScales:
    """How whole sums stand for real numbers: float32(sum) · scale + offset.

    Both are arrays of ``shape``, row by row, which NumPy's rule broadcasts to the model's. Without ``offset``, which
    then has no elements, nothing is added.
    """

    scale: tuple[float, ...]
    offset: tuple[float, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """A tensor between layers, and the tensor of the model's border it stands for, if any.

    The datapath's tensors are int8 and lie in memory as NHWC. Those that only the host core touches have any ``dtype``
    of NumPy's and their ONNX shape in ``dims``: of four dimensions they lie as NHWC too, else row by row
    (``shape`` is then (elements, 1, 1)). ``place`` tells of a tensor that is part of another one.

    Inputs and outputs of a network have an ``onnx_name``: the model's input that is quantised to this tensor, or
    the output that is dequantised from it. ``onnx_dtype`` is then ``float32``, ``float16`` where the model has half
    floats, or ``int8`` or ``uint8`` where it hands integers out (uint8 ones are 128 more), and ``onnx_shape`` includes
    the batch. ``preparation`` is what is computed of a float input before it is quantised.

    An output that stands for floats is int8, or int32 with the scales of its ``channels``.

    ``unsigned`` tells that the tensor was uint8 in the model; ``zero_point`` is int8 all the same.

    A tensor of several ``images`` holds one after the other: ``shape`` is (channels, images · height, width), and
    the first of ``dims`` and of ``onnx_shape`` counts ``images`` times what it does in one.

    One of ``words`` stands for a tensor of 16 bits, as `compiler.words.word_tensors` has it; its zero point is
    int16, and ``unsigned`` tells that the words were uint16, 32,768 more.

    ``shape`` and ``place`` are those in memory; of a tensor of the model with ``absent`` channels these are fewer.
    """

    name: str
    shape: Shape
    scale: np.float32
    zero_point: int
    unsigned: bool = False
    onnx_name: str | None = None
    onnx_dtype: str | None = None
    onnx_shape: tuple[int, ...] | None = None
    dtype: str = "int8"
    dims: tuple[int, ...] | None = None
    place: Place | None = None
    preparation: tuple[PreparationStep, ...] = ()
    channels: ChannelScales | None = None
    images: int = 1
    absent: AbsentChannels | None = None
    words: bool = False

    @property
    def in_model(self) -> "TensorInfo":
        """The tensor with all channels that it has in the model, as it would lie in memory."""
        if self.absent is None:
            return self
        return replace(self, shape=(self.absent.channels, *self.shape[1:]), place=self.absent.place, absent=None)

    @property
    def bytes(self) -> int:
        """Bytes of its elements, without gaps."""
        return math.prod(self.shape) * DTYPES[self.dtype]

    @property
    def array_shape(self) -> tuple[int, ...]:
        """The shape it has as an array: ``dims`` where there are such, else ``shape``."""
        return self.shape if self.dims is None else self.dims

    @property
    def of_image(self) -> "TensorInfo":
        """The tensor of the first image alone."""
        if self.images == 1:
            return self
        channels, height, width = self.shape
        return replace(self, shape=(channels, height // self.images, width), dims=self._each(self.dims),
                       onnx_shape=self._each(self.onnx_shape), images=1)

    @property
    def image_step(self) -> int:
        """Bytes from the first element of an image to that of the next."""
        if self.place is None:
            return self.bytes // self.images
        return self.place.image_step or self.shape[1] // self.images * self.place.row_step

    def _each(self, extents: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return extents and (extents[0] // self.images, *extents[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadInput:
    """An input of the model that no layer reads, so that no tensor stands for it: as the model states it.

    ``position`` counts it among all inputs of the model, ``shape`` includes the batch.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """Layers in execution order, the tensors between them, and the constants that layers read (row by row).

    A constant that layers of the datapath read is a tensor too: int8, its bytes as they lie in memory.

    ``tensors`` holds every layer's input, residual and output by name; ``inputs`` and ``outputs`` are in the order of
    the model. Several outputs of the model may be one tensor. ``unread`` are the model's other inputs, and ``defaults``
    name those of its constants that are inputs too. ``state`` has outputs by the inputs that they are in the next call.
    """

    name: str
    layers: tuple[AnyLayer, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    tensors: Mapping[str, TensorInfo]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    unread: tuple[UnreadInput, ...] = ()
    defaults: tuple[str, ...] = ()
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all layers."""
        return sum(layer.macs for layer in self.layers)

    def unused_name(self, wanted: str) -> str:
        """Return a name for another tensor: ``wanted``, or the first of "wanted 2", "wanted 3" … that is not taken."""
        name, number = wanted, 1
        while name in self.tensors:
            number += 1
            name = f"{wanted} {number}"
        return name
