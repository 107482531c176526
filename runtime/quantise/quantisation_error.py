"""The error of quantisation: each tensor's distance from its float original, and how often answers agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log10

import numpy as np

from tilewright.compiler.network.layers import Network, Shape, TensorInfo
from tilewright.runtime.oracle.conversion import as_int8
from tilewright.runtime.oracle.onnx_runtime import FloatReference, Reference
from tilewright.runtime.quantise.quantised_model import Quantised
from tilewright.tools.progress import Steps

__all__ = ["LayerError", "QuantisationError", "quantisation_error"]

_MOST_SAMPLES = 32
"""Of the calibration set that are run."""

_WORST = 3
"""Layers that are named."""

_SUFFIX = "_QuantizeLinear_Output"


@dataclass(frozen=True, slots=True)
class LayerError:
    """A layer and its tensor's signal-to-quantisation-noise ratio in dB: 10 log10 of Σ x² / Σ (x - quantised x)²."""

    layer: str
    tensor: str
    sqnr: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisationError:
    """An int8 model compared with its float original, both in ONNX Runtime.

    Attributes
    ----------
    layers : tuple of LayerError
        In order, of layers whose tensor the float model has too.
    samples : int
        So many of the calibration set were run.
    agreeing, answers : int
        Top-1: how many of the answers are the same. An answer is the largest along axis 1 of an output, at each place
        of the other axes.
    """

    layers: tuple[LayerError, ...]
    samples: int
    agreeing: int
    answers: int

    @property
    def worst(self) -> tuple[LayerError, ...]:
        """The layers with the most noise, worst first."""
        return tuple(sorted(self.layers, key=lambda each: each.sqnr)[:_WORST])


def quantisation_error(quantised: Quantised, network: Network, steps: Steps) -> QuantisationError:
    """Run the calibration samples through the int8 model and the float one and compare.

    Parameters
    ----------
    quantised : Quantised
        A model that was quantised here.
    network : Network
        The compiled network, for names and scales of tensors.
    """
    tensors = [network.tensors[layer.writes[0]] for layer in network.layers]
    views = {info.name: _View.of(info, network) for info in tensors if _is_levels(info, network)}
    reference = Reference(quantised.model)
    plain = FloatReference(quantised.float_model, (_float_name(view.whole) for view in views.values()))
    compared = {name: view for name, view in views.items() if _float_name(view.whole) in plain.names}
    feeds = quantised.feeds(_MOST_SAMPLES)
    sums = {name: np.zeros(2) for name in compared}
    agreeing = answers = 0
    with steps.count(f"Comparing with {quantised.float_model.name} in float", len(feeds)) as advance:
        for feed in feeds:
            rounded, exact = reference.run(feed), plain.run(feed)
            for name, view in compared.items():
                if view.whole in rounded:
                    sums[name] += view.powers(exact[_float_name(view.whole)], rounded[view.whole])
            same, count = _agreement(plain.outputs, exact, rounded)
            agreeing, answers = agreeing + same, answers + count
            advance()
    written = [(layer.name, layer.writes[0]) for layer in network.layers]
    layers = tuple(LayerError(layer, tensor, _decibels(*sums[tensor])) for layer, tensor in written
                   if tensor in sums and sums[tensor].any())
    return QuantisationError(layers=layers, samples=len(feeds), agreeing=agreeing, answers=answers)


def _is_levels(info: TensorInfo, network: Network) -> bool:
    """Tell whether a tensor is levels, or a part of some; the bytes that make a result in float are none."""
    return info.dtype == "int8" and (info.place is None or network.tensors[info.place.parent].dtype == "int8")


def _float_name(tensor: str) -> str:
    """Return what the quantiser of ONNX Runtime calls in float the tensor that it quantises to ``tensor``."""
    return tensor.removesuffix(_SUFFIX)


@dataclass(frozen=True, slots=True)
class _View:
    """A tensor as the models have it: a name, the elements if it is a part of that one, and what its values mean."""

    whole: str
    places: np.ndarray | None
    shape: Shape
    scale: np.float64
    zero_point: int

    @classmethod
    def of(cls, info: TensorInfo, network: Network) -> "_View":
        scale, place = np.float64(info.scale), info.place
        if place is None:
            return cls(info.name, None, info.shape, scale, info.zero_point)
        channels, height, width = info.shape
        places = (place.offset + np.arange(channels)[:, None, None] + place.row_step * np.arange(height)[:, None]
                  + place.pixel_step * np.arange(width))
        return cls(place.parent, places, network.tensors[place.parent].shape, scale, info.zero_point)

    def powers(self, exact: np.ndarray, rounded: np.ndarray) -> np.ndarray:
        """Return the power of the signal and of its noise."""
        signal = self._cut(exact).astype(np.float64)
        noise = signal - (self._cut(as_int8(rounded)).astype(np.float64) - self.zero_point) * self.scale
        return np.array([np.sum(signal**2), np.sum(noise**2)])

    def _cut(self, array: np.ndarray) -> np.ndarray:
        if self.places is None:
            return array.ravel()
        return array.reshape(self.shape).transpose(1, 2, 0).ravel()[self.places.ravel()]


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return inf
    return 10 * log10(signal / noise) if signal else -inf


def _agreement(outputs: Sequence[str], exact: Mapping[str, np.ndarray],
               rounded: Mapping[str, np.ndarray]) -> tuple[int, int]:
    """Return how many answers agree, and how many there are."""
    agreeing = answers = 0
    for name in outputs:
        if exact[name].ndim > 1 and exact[name].shape[1] > 1:
            same = exact[name].argmax(axis=1) == rounded[name].argmax(axis=1)
            agreeing, answers = agreeing + int(np.count_nonzero(same)), answers + same.size
    return agreeing, answers
