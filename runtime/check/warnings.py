"""Warnings about inaccurate or slow models, from their compiled layers alone, before they are built or run."""

from collections.abc import Callable, Iterable

import numpy as np

from tilewright.compiler.network.layers import Layer, Network

__all__ = ["listed", "model_warnings"]

_SPREAD = 100.0
"""From this ratio of the largest to the smallest scale of a layer's channels it is worth a word."""

_LEVELS = 32
"""Weights of a channel that nowhere reach this level use less than a quarter of their range."""

_LARGEST, _SMALLEST = 1e4, 1e-6
"""Ranges of tensors beyond which a calibration has rather met an outlier, or nothing at all."""

_NAMED = 3
_INT32 = 2.0**31


def model_warnings(network: Network) -> tuple[str, ...]:
    """Return a sentence for each kind of risk that some layers or tensors of ``network`` have, naming them."""
    found = []
    for say, test in _LAYER_TESTS:
        if hits := [f"{layer.name} ({text})" for layer in network.layers
                    if isinstance(layer, Layer) and (text := test(layer))]:
            found.append(f"{say}: {listed(hits)}")
    found += _ranges(network)
    if inexact := [layer.name for layer in network.layers if not layer.exact]:
        found.append(f"ONNX Runtime computes these layers in float, so they may be one level off: {listed(inexact)}")
    return tuple(found)


def listed(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    every = list(names)
    return ", ".join(every[:_NAMED]) + (f" and {len(every) - _NAMED} more" if len(every) > _NAMED else "")


def _live(layer: Layer) -> np.ndarray:
    """Return which channels have a weight that is not zero."""
    assert layer.weights is not None
    return np.asarray(layer.weights.reshape(len(layer.weights), -1).any(axis=1))


def _spread(layer: Layer) -> str:
    if layer.weights is None or not (live := _live(layer)).any():
        return ""
    scales = layer.requantisation.scale[live]
    ratio = float(scales.max()) / max(float(scales.min()), 1e-30)
    return f"{ratio:,.0f} to 1" if ratio >= _SPREAD else ""


def _unused(layer: Layer) -> str:
    if layer.weights is None or not (live := _live(layer)).any():
        return ""
    peaks = np.abs(layer.weights.astype(np.int16)).reshape(len(layer.weights), -1).max(axis=1)[live]
    if peaks.max() == 1:  # no quantised weights: ones that move or add channels
        return ""
    count = int(np.count_nonzero(peaks < _LEVELS))
    return f"{count} of {len(peaks)} channels within ±{int(peaks[peaks < _LEVELS].max())}" if count else ""


def _dead(layer: Layer) -> str:
    if layer.weights is None:
        return ""
    count = int(np.count_nonzero(~_live(layer)))
    return f"{count} of {len(layer.weights)} channels" if count else ""


def _magnified(layer: Layer) -> str:
    if layer.kind != "conv":
        return ""
    largest = float(layer.requantisation.scale.max())
    return f"{largest:.2g} levels per unit" if largest > 1 else ""


def _overflow(layer: Layer) -> str:
    if layer.weights is None:
        return ""
    reach = np.abs(layer.weights.astype(np.float64)).reshape(len(layer.weights), -1).sum(axis=1) * 128
    reach += np.abs(layer.bias.astype(np.float64))
    count = int(np.count_nonzero(reach >= _INT32))
    return f"{count} of {len(reach)} channels" if count else ""


_LAYER_TESTS: tuple[tuple[str, Callable[[Layer], str]], ...] = (
    ("The scales of a layer's channels are far apart, and its small channels use few levels", _spread),
    ("Weights use less than a quarter of their int8 range, as happens with one scale for unlike channels", _unused),
    ("All weights of a channel are zero", _dead),
    ("Outputs are quantised more finely than their sums, so some of the 256 levels never occur", _magnified),
    ("Sums can overflow 32 bits for some inputs", _overflow),
)


def _ranges(network: Network) -> list[str]:
    """Return sentences on tensors of unlikely ranges."""
    ranges = {info.name: float(info.scale) * 127 for info in network.tensors.values() if info.dtype == "int8"}
    found = []
    if huge := [f"{name} (±{size:.3g})" for name, size in ranges.items() if size > _LARGEST]:
        found.append("The range is huge, so one level is a large step; is there an outlier among the samples? "
                     f"{listed(huge)}")
    if tiny := [f"{name} (±{size:.3g})" for name, size in ranges.items() if size < _SMALLEST]:
        found.append(f"The range is almost zero, and all values beyond it saturate: {listed(tiny)}")
    return found
