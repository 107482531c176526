"""Where the elements of a resized axis lie in its source, and the weights of their neighbours there.

Coordinates and weights are float32, computed as ONNX Runtime computes them (``upsamplebase.h``), to the bit: of bytes
it cuts off the sum, and 73.999996 is 73.
"""

import numpy as np

__all__ = ["COORDINATES", "cubic", "linear", "originals"]

COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
"""The coordinate modes that :func:`originals` knows."""


def originals(mode: str, dim: int, size: int, scale: np.float32) -> np.ndarray:
    """Return where each of ``size`` elements lies in the ``dim`` of the source, float32."""
    x = np.arange(size, dtype=np.float32)
    half = np.float32(0.5)
    match mode:
        case "asymmetric":
            return x / scale
        case "align_corners":
            return x * np.float32(dim - 1) / np.float32(size - 1) if size > 1 else np.zeros_like(x)
        case "pytorch_half_pixel" if size == 1:
            return np.zeros_like(x)
        case "half_pixel_symmetric":
            adjustment = np.float32(size) / (scale * np.float32(dim))
            offset = np.float32(dim) / 2 * (1 - adjustment)
            # All but the offset is of float64, as its constants are there.
            return (np.float64(offset) + (x.astype(np.float64) + 0.5) / np.float64(scale) - 0.5).astype(np.float32)
    return (x + half) / scale - half


def linear(x: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the two neighbours of each ``x`` in ``dim`` elements, and their weights; both (2, size)."""
    inside = np.clip(x, 0, np.float32(dim - 1))
    low = np.minimum(inside.astype(np.int64), dim - 1)
    high = np.minimum(low + 1, dim - 1)
    upper = inside - low.astype(np.float32)
    return np.stack([low, high]), np.stack([1 - upper, upper])


def cubic(x: np.ndarray, a: np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Return the four neighbours of each ``x``, which may lie outside, and their weights; both (4, size).

    R. Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981.
    """
    low = np.floor(x)
    s = x - low
    weights = [((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a, ((a + 2) * s - (a + 3)) * s * s + 1,
               ((a + 2) * (1 - s) - (a + 3)) * (1 - s) * (1 - s) + 1,
               ((a * (2 - s) - 5 * a) * (2 - s) + 8 * a) * (2 - s) - 4 * a]
    return np.stack([low.astype(np.int64) + k for k in (-1, 0, 1, 2)]), np.stack(weights)
