"""A transposed convolution as ordinary ones: one for each phase of the output, stored interleaved.

Output row t takes from input row i the kernel row k = t + pad - i · stride, so rows with the same (t + pad) mod stride
see the same rows of the kernel, every stride-th of them, over neighbouring rows of the input: a convolution of
stride 1 with that part of the kernel, turned round. The same holds for columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.network.layers import Layer, Pads, Pair, Requantisation, Shape, TensorInfo
from tilewright.compiler.network.places import TensorPart
from tilewright.isa.numerics import wrap

__all__ = ["StridePhase", "TransposedConvolution", "phases", "transposed_shape"]


@dataclass(frozen=True, slots=True)
class StridePhase:
    """One axis of one phase: outputs first, first + stride, ..; ``taps`` index the kernel, -1 for a zero."""

    first: int
    count: int
    taps: tuple[int, ...]
    before: int
    after: int


def phases(image: int, out: int, kernel: int, stride: int, pad: int) -> Iterator[StridePhase]:
    """Yield the phases of an axis of ``image`` inputs and ``out`` outputs, ``pad`` of which are cut off before."""
    for first in range(min(stride, out)):
        count = -(-(out - first) // stride)
        quotient, rest = divmod(first + pad, stride)
        # Output number n of this phase takes tap rest + stride · j from input quotient + n - j.
        taps = -(-(kernel - rest) // stride) if rest < kernel else 0
        low, high = min(0, quotient + count - image), max(taps - 1, quotient, 0)
        # Zero taps on either side keep the padding from being negative.
        chosen = tuple(rest + stride * j if 0 <= j < taps else -1 for j in range(high, low - 1, -1))
        yield StridePhase(first, count, chosen, high - quotient, quotient + count - 1 - low - (image - 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TransposedConvolution:
    """A ConvTranspose between quantised tensors.

    Attributes
    ----------
    name, onnx_nodes
        Of its layers.
    source, output : TensorInfo
        Input and result; output padding is in the shape of ``output``.
    weights : ndarray
        int8 of shape (C, O // groups, kernel height, kernel width), as ONNX has it.
    bias : ndarray
        int32 of shape (O,), as ONNX has it: without the zero point of the input.
    strides, pads, dilations, groups
        As ONNX has them; of ``pads`` only those before the image matter.
    requantisation, table, exact
        Of every phase, as in :class:`Layer`.
    """

    name: str
    onnx_nodes: tuple[str, ...]
    source: TensorInfo
    output: TensorInfo
    weights: np.ndarray
    bias: np.ndarray
    strides: Pair
    pads: Pads
    requantisation: Requantisation
    dilations: Pair = (1, 1)
    groups: int = 1
    table: np.ndarray | None = None
    exact: bool = True

    def layers(self) -> tuple[list[Layer], dict[str, TensorInfo]]:
        """Return the layers that compute it, one for each phase, and the parts of ``output`` that they write."""
        kernels = _as_convolution(_dilated(self.weights, self.dilations), self.groups)
        (_, height, width), (_, out_height, out_width) = self.source.shape, self.output.shape
        layers, parts = [], {}
        for y in phases(height, out_height, kernels.shape[2], self.strides[0], self.pads[0]):
            for x in phases(width, out_width, kernels.shape[3], self.strides[1], self.pads[1]):
                part = self._part(y, x)
                layers.append(self._layer(kernels, y, x, part))
                parts[part.name] = part
        return layers, parts

    def _suffix(self, y: StridePhase, x: StridePhase) -> str:
        return f"[{y.first}::{self.strides[0]}, {x.first}::{self.strides[1]}]"

    def _part(self, y: StridePhase, x: StridePhase) -> TensorInfo:
        """Return the part of the output that a phase writes."""
        output = self.output
        place = TensorPart(output.name, (0, y.first, x.first), self.strides).place(output.shape)
        return TensorInfo(name=f"{output.name}{self._suffix(y, x)}", shape=(output.shape[0], y.count, x.count),
                          scale=output.scale, zero_point=output.zero_point, unsigned=output.unsigned, place=place)

    def _layer(self, kernels: np.ndarray, y: StridePhase, x: StridePhase, part: TensorInfo) -> Layer:
        """Return the layer of a phase, with the zero point of its input in the bias."""
        weights = _taken(kernels, y.taps, x.taps)
        sums = weights.sum(axis=(1, 2, 3), dtype=np.int64)
        folded = self.bias.astype(np.int64) - self.source.zero_point * sums
        return Layer(name=f"{self.name}{self._suffix(y, x)}", kind="conv", onnx_nodes=self.onnx_nodes,
                     input=self.source.name, output=part.name, in_shape=self.source.shape, conv_shape=part.shape,
                     out_shape=part.shape, weights=weights, kernel=(len(y.taps), len(x.taps)),
                     bias=np.array([wrap(int(value), 32) for value in folded], np.int32),
                     pads=(y.before, x.before, y.after, x.after), groups=self.groups,
                     pad_value=self.source.zero_point, requantisation=self.requantisation, table=self.table,
                     exact=self.exact)


def transposed_shape(in_shape: Shape, outputs: int, kernel: Pair, strides: Pair, pads: Pads, dilations: Pair = (1, 1),
                     output_padding: Pair = (0, 0)) -> Shape:
    """Return the shape of a ConvTranspose's result, by the formula of ONNX's operator specification."""
    height, width = (
        strides[i] * (in_shape[1 + i] - 1) + output_padding[i] + (kernel[i] - 1) * dilations[i] + 1
        - pads[i] - pads[2 + i] for i in range(2))
    return outputs, height, width


def _dilated(weights: np.ndarray, dilations: Pair) -> np.ndarray:
    """Return the kernels with zeros between their taps."""
    if dilations == (1, 1):
        return weights
    *counts, height, width = weights.shape
    spread = np.zeros((*counts, (height - 1) * dilations[0] + 1, (width - 1) * dilations[1] + 1), np.int8)
    spread[:, :, ::dilations[0], ::dilations[1]] = weights
    return spread


def _as_convolution(weights: np.ndarray, groups: int) -> np.ndarray:
    """Return (C, O // groups, kh, kw) as a convolution has it: (O, C // groups, kh, kw), not turned round."""
    inputs, each, height, width = weights.shape
    grouped = weights.reshape(groups, inputs // groups, each, height, width)
    return grouped.transpose(0, 2, 1, 3, 4).reshape(groups * each, inputs // groups, height, width)


def _taken(kernels: np.ndarray, rows: tuple[int, ...], columns: tuple[int, ...]) -> np.ndarray:
    """Return the kernels' ``rows`` and ``columns``, zeros for -1."""
    padded = np.pad(kernels, ((0, 0), (0, 0), (0, 1), (0, 1)))
    return np.ascontiguousarray(padded[:, :, rows, :][:, :, :, columns])
