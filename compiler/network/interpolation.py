"""A linear or cubic resize as depthwise convolutions: one for each phase of the output, stored interleaved.

Outputs of an axis that weigh their neighbours alike form a phase: of an enlargement by p / q there are p, each a
convolution of stride q with fixed weights. Those are rational numbers, and become integers over one denominator that
is part of the requantisation's scale; how far that can be off in levels is worked out, not hoped for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.compiler.network.layers import Layer, Requantisation, TensorInfo
from tilewright.compiler.network.places import PlacementStep, SliceMove, TensorPart
from tilewright.isa.numerics import wrap

__all__ = ["AxisPhase", "FixedWeights", "Interpolation", "axis_phases", "fixed_weights"]

_ALIKE = 1e-4
"""Weights that differ by less are rounding errors of float32 coordinates apart, and taken as equal."""

_LARGEST = 127
_CANDIDATES = 512


@dataclass(frozen=True, slots=True)
class AxisPhase:
    """One axis of one phase: outputs first, first + step, ..; output n takes ``weights`` from start + stride · n on.

    ``deviation`` is the largest sum of differences between ``weights`` and those of an output.
    """

    first: int
    step: int
    count: int
    start: int
    stride: int
    weights: tuple[float, ...]
    deviation: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class FixedWeights:
    """Integer ``levels`` over ``denominator`` in place of weights, ``error`` levels of the result away at most.

    ``levels`` are int8 of shape (rows, columns · copies): columns that are there several times share a weight.
    """

    levels: np.ndarray
    denominator: float
    error: float


def axis_phases(places: np.ndarray, weights: np.ndarray) -> tuple[AxisPhase, ...]:
    """Return the phases of an axis.

    Parameters
    ----------
    places : ndarray
        int64 of shape (taps, outputs): the neighbours of each output; one may be there twice.
    weights : ndarray
        float32 of the same shape.
    """
    alike: list[tuple[np.ndarray, list[tuple[int, int, float]]]] = []
    for output in range(places.shape[1]):
        start, dense = _dense(places[:, output], weights[:, output])
        for known, members in alike:
            if known.size == dense.size and np.abs(known - dense).max() < _ALIKE:
                members.append((output, start, float(np.abs(known - dense).sum())))
                break
        else:
            alike.append((dense, [(output, start, 0.0)]))
    return tuple(phase for dense, members in alike for phase in _progressions(dense, members))


def _dense(places: np.ndarray, weights: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the first neighbour that counts, and the weights from it on to the last."""
    first = int(places.min())
    found = np.zeros(int(places.max()) - first + 1)
    np.add.at(found, places - first, weights.astype(np.float64))
    counts = np.flatnonzero(np.abs(found) >= _ALIKE)
    return first + int(counts[0]), found[counts[0]:counts[-1] + 1]


def _progressions(dense: np.ndarray, members: Sequence[tuple[int, int, float]]) -> list[AxisPhase]:
    """Return outputs that weigh alike as arithmetic progressions of output and source."""
    phases, index = [], 0
    while index < len(members):
        end, (first, start, _) = index + 1, members[index]
        step = stride = 1
        if end < len(members) and members[end][1] > start:
            step, stride = members[end][0] - first, members[end][1] - start
            while end < len(members) and members[end][:2] == (first + step * (end - index),
                                                              start + stride * (end - index)):
                end += 1
        phases.append(AxisPhase(first, step, end - index, start, stride, tuple(map(float, dense)),
                                max(member[2] for member in members[index:end])))
        index = end
    return phases


@lru_cache(maxsize=4096)
def fixed_weights(rows: AxisPhase, columns: AxisPhase, copies: int, zero_point: int, ratio: float, down: bool,
                  ) -> FixedWeights:
    """Return the integers that come nearest to the weights of a phase.

    Parameters
    ----------
    rows, columns : AxisPhase
    copies : int
        How often each column of the source is there.
    zero_point : int
        Of the source, int8.
    ratio : float
        Scale of the source over scale of the result.
    down : bool
        The result is rounded down: by half a level, for which the denominator must be even.
    """
    wanted = np.outer(rows.weights, columns.weights)
    # Rounding down takes even weights, so that no sum lies half a level from what it is rounded to.
    unit = 2 if down else 1
    most = _LARGEST * copies / np.abs(wanted).max() / unit
    integers = np.arange(1.0, int(most) + 1)
    others = np.linspace(most / 2, most, _CANDIDATES)
    counts = (integers if down else np.concatenate([integers, others])).reshape(-1, 1, 1)
    rounded = np.rint(wanted * counts)
    errors = rounded / counts - wanted
    low, high = errors * (-128 - zero_point), errors * (127 - zero_point)
    bounds = np.maximum(np.maximum(low, high).sum(axis=(1, 2)), -np.minimum(low, high).sum(axis=(1, 2)))
    fits = np.abs(rounded).max(axis=(1, 2)) * unit <= _LARGEST * copies
    best = int(np.argmin(np.where(fits, bounds, np.inf)))
    # Weights that are only nearly the phase's own, each beside neighbours that may be 255 levels apart.
    error = float(bounds[best]) + 2 * 255 * (rows.deviation + columns.deviation)
    denominator = unit * float(counts[best, 0, 0])
    return FixedWeights(_shared(unit * rounded[best].astype(np.int64), copies), denominator,
                        (error + (down and error > 0) / denominator) * ratio)


def _shared(levels: np.ndarray, copies: int) -> np.ndarray:
    """Return int8 weights for ``copies`` of every column, whose sum is ``levels``."""
    parts = [(levels + index) // copies for index in range(copies)]
    return np.stack(parts, axis=2).reshape(levels.shape[0], -1).astype(np.int8)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interpolation:
    """A linear or cubic resize of a quantised tensor.

    Attributes
    ----------
    name, onnx_nodes
        Of its layers.
    source, output : TensorInfo
        Input and result. The input has every column ``copies`` times.
    rows, columns : tuple of AxisPhase
    copies : int
    down : bool
        The result is rounded down, not to the nearest.
    requantisation : Requantisation
        Of every phase, but for the denominator of its weights.
    table, exact
        As in :class:`Layer`.
    """

    name: str
    onnx_nodes: tuple[str, ...]
    source: TensorInfo
    output: TensorInfo
    rows: tuple[AxisPhase, ...]
    columns: tuple[AxisPhase, ...]
    copies: int
    down: bool
    requantisation: Requantisation
    table: np.ndarray | None = None
    exact: bool = True

    def steps(self) -> tuple[list[PlacementStep], dict[str, TensorInfo]]:
        """Return slices of the source and the layers that read them, and the tensors that come with them."""
        steps: list[PlacementStep] = []
        tensors: dict[str, TensorInfo] = {}
        for y in self.rows:
            for x in self.columns:
                piece, part = self._piece(y, x), self._part(y, x)
                if piece.name != self.source.name:
                    steps.append(SliceMove(name=piece.name, onnx_nodes=self.onnx_nodes, input=self.source.name,
                                           output=piece.name, starts=(0, y.start, x.start * self.copies)))
                    tensors[piece.name] = piece
                tensors[part.name] = part
                steps.append(self._layer(y, x, piece, part))
        return steps, tensors

    @staticmethod
    def _suffix(y: AxisPhase, x: AxisPhase) -> str:
        return f"[{y.first}::{y.step}, {x.first}::{x.step}]"

    def _piece(self, y: AxisPhase, x: AxisPhase) -> TensorInfo:
        """Return the part of the source that a phase reads."""
        height, width = ((each.count - 1) * each.stride + len(each.weights) for each in (y, x))
        shape = (self.source.shape[0], height, width * self.copies)
        if shape == self.source.shape:
            return self.source
        source = self.source
        return TensorInfo(name=f"{source.name} for {self.output.name}{self._suffix(y, x)}", shape=shape,
                          scale=source.scale, zero_point=source.zero_point, unsigned=source.unsigned)

    def _part(self, y: AxisPhase, x: AxisPhase) -> TensorInfo:
        """Return the part of the output that a phase writes."""
        output = self.output
        place = TensorPart(output.name, (0, y.first, x.first), (y.step, x.step)).place(output.shape)
        return TensorInfo(name=f"{output.name}{self._suffix(y, x)}", shape=(output.shape[0], y.count, x.count),
                          scale=output.scale, zero_point=output.zero_point, unsigned=output.unsigned, place=place)

    def _layer(self, y: AxisPhase, x: AxisPhase, piece: TensorInfo, part: TensorInfo) -> Layer:
        channels, zero = piece.shape[0], piece.zero_point
        found = fixed_weights(y, x, self.copies, zero, float(piece.scale / part.scale), self.down)
        kernel = found.levels.shape
        # Half a level less, but for a bit, makes down of nearest: (2 n - (d - 1)) / 2 d for n / d.
        bias = -zero * int(found.levels.sum()) - self.down * (int(found.denominator) // 2 - 1)
        scale = self.requantisation.scale / np.float32(found.denominator)
        return Layer(name=f"{self.name}{self._suffix(y, x)}", kind="conv", onnx_nodes=self.onnx_nodes,
                     input=piece.name, output=part.name, in_shape=piece.shape, conv_shape=part.shape,
                     out_shape=part.shape, weights=np.ascontiguousarray(np.broadcast_to(
                         found.levels, (channels, 1, *kernel))),
                     bias=np.full(channels, wrap(bias, 32), np.int32), kernel=(kernel[0], kernel[1]),
                     strides=(y.stride, x.stride * self.copies), groups=channels, pad_value=zero,
                     requantisation=Requantisation(scale=np.full(channels, scale, np.float32),
                                                   zero_point=self.requantisation.zero_point,
                                                   low=self.requantisation.low, high=self.requantisation.high),
                     table=self.table, exact=self.exact)
