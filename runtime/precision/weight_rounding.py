"""Weights as levels of few bits: a scale for each output channel, and levels that keep what the layer computes.

The scale of a channel is searched for the least squared error. Where it is known how the inputs of a channel's weights
vary together, a weight's rounding error is made good by those that are rounded after it (GPTQ, Frantar et al., ICLR
2023): the error of the results becomes less, though that of the weights becomes more.
"""

import numpy as np

__all__ = ["MOST_CORRELATED", "ends", "rounded_weights"]

MOST_CORRELATED = 2304
"""Weights of a channel, at most, that are rounded one after the other: the time grows with their square."""

_FRACTIONS = np.concatenate([np.arange(0.10, 0.40, 0.05), np.arange(0.40, 1.13, 0.02)])
"""Of the scale at which a channel's greatest weight is the greatest level."""

_DAMPING = 0.01
"""Of the mean variance, added to each: what the samples did not vary."""


def ends(bits: int) -> tuple[int, int]:
    """Return the least and the greatest level."""
    return -2**(bits - 1), 2**(bits - 1) - 1


def rounded_weights(weights: np.ndarray, bits: int, moments: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return levels and scales of ``weights`` (channels, weights of each), float64.

    Parameters
    ----------
    weights : ndarray
    bits : int
    moments : ndarray, optional
        Mean products of the inputs of each two weights of a channel, (weights, weights).

    Returns
    -------
    levels : ndarray of int8, (channels, weights)
    scales : ndarray of float64, (channels,)
        A channel of zeros has scale 0.
    """
    scales = _searched(weights, bits, None if moments is None else np.maximum(np.diagonal(moments), 0))
    safe = np.where(scales > 0, scales, 1.0)[:, np.newaxis]
    if moments is None or weights.shape[1] > MOST_CORRELATED or not np.diagonal(moments).any():
        return _levels(weights, safe, bits), scales
    return _in_turn(weights, safe, bits, moments), scales


def _levels(weights: np.ndarray, scales: np.ndarray, bits: int) -> np.ndarray:
    return np.clip(np.rint(weights / scales), *ends(bits)).astype(np.int8)


def _searched(weights: np.ndarray, bits: int, variances: np.ndarray | None) -> np.ndarray:
    """Return the scale of each channel at which its squared error, each weight's times its variance, is least."""
    _, top = ends(bits)
    most = np.abs(weights).max(axis=1, initial=0) / top
    counts = np.ones(weights.shape[1]) if variances is None or not variances.any() else variances
    best, least = most.copy(), np.full(len(weights), np.inf)
    for fraction in _FRACTIONS:
        trial = np.where(most > 0, most * fraction, 1.0)[:, np.newaxis]
        levels = _levels(weights, trial, bits).astype(np.float64)
        # The best scale for these levels.
        below = (levels**2) @ counts
        fitted = np.where(below > 0, (levels * weights) @ counts / np.where(below > 0, below, 1), 0)[:, np.newaxis]
        trial = np.where(fitted > 0, fitted, trial)
        errors = (_levels(weights, trial, bits) * trial - weights)**2 @ counts
        better = errors < least
        best, least = np.where(better, trial[:, 0], best), np.where(better, errors, least)
    return np.where(most > 0, best, 0.0)


def _in_turn(weights: np.ndarray, scales: np.ndarray, bits: int, moments: np.ndarray) -> np.ndarray:
    """Return levels that are rounded one after the other, each error spread on the weights that are left."""
    damped = moments + np.diag(np.full(len(moments), _DAMPING * np.diagonal(moments).mean()))
    order = np.argsort(-np.diagonal(moments), kind="stable")
    factor = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T     # upper
    left, levels = weights[:, order].copy(), np.zeros(weights.shape, np.int8)
    for place in range(left.shape[1]):
        levels[:, place] = _levels(left[:, place], scales[:, 0], bits)
        off = (left[:, place] - levels[:, place] * scales[:, 0]) / factor[place, place]
        left[:, place + 1:] -= off[:, np.newaxis] * factor[place, place + 1:]
    return levels[:, np.argsort(order, kind="stable")]
