"""Handwritten digits as 1×32×32 images, in LeNet-5's format.

The data set is scikit-learn's bundled one: 1797 digits of 8×8 pixels with values 0 … 16. Each is enlarged
fourfold (bilinear, pixel centres aligned) and brought to x = (pixel / 16 - MEAN) / SPREAD.
``digits.npz`` holds SAMPLES of the test images, so that using a model needs neither scikit-learn nor torch.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = [
    "MEAN", "SAMPLES", "SAMPLES_FILE", "SIDE", "SPREAD", "TEST_IMAGES", "Digits", "enlarge", "interpolation", "load",
    "samples", "write_samples",
]

MEAN, SPREAD = 0.3, 0.4
SIDE = 32
TEST_IMAGES = 540
SAMPLES = 32
SAMPLES_FILE = Path(__file__).parent / "digits.npz"


class Digits(NamedTuple):
    """Images, float32 of shape (n, 1, 32, 32), and the digit each shows, int64 of shape (n,)."""

    images: np.ndarray
    labels: np.ndarray


def samples() -> Digits:
    """Return the committed test images, which no model was trained or calibrated on."""
    with np.load(SAMPLES_FILE, allow_pickle=False) as archive:
        return Digits(archive["images"], archive["labels"])


def load() -> tuple[Digits, Digits]:
    """Return training and test digits: 1257 and 540 of them, stratified, always the same split."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    raw = load_digits()
    images = ((enlarge(raw.images / 16, SIDE) - MEAN) / SPREAD).astype(np.float32)[:, np.newaxis]
    labels = raw.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=TEST_IMAGES, random_state=0, stratify=labels)
    return Digits(train_x, train_y), Digits(test_x, test_y)


def enlarge(images: np.ndarray, side: int) -> np.ndarray:
    """Resize square ``images`` of shape (n, k, k) to (n, side, side), bilinear, edges repeated."""
    weights = interpolation(images.shape[-1], side)                       # (side, k)
    return weights @ images @ weights.T


def interpolation(old: int, new: int) -> np.ndarray:
    """Return the (new, old) matrix that interpolates ``old`` samples linearly at ``new`` pixel centres."""
    centre = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    return np.maximum(0, 1 - np.abs(centre[:, np.newaxis] - np.arange(old)))


def write_samples(test: Digits) -> None:
    """Write the first ``SAMPLES`` test digits to ``digits.npz``."""
    np.savez_compressed(SAMPLES_FILE, images=test.images[:SAMPLES], labels=test.labels[:SAMPLES])
