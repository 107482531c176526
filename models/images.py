"""Noise images with the spectrum of natural ones, to calibrate and run the large networks."""

import numpy as np

__all__ = ["images"]


def images(count: int, side: int, seed: int) -> np.ndarray:
    """Return float32 images (count, 3, side, side) of zero mean and unit variance, amplitude falling as 1 / frequency.

    That law holds for natural images: Field, "Relations between the statistics of natural images and the response
    properties of cortical cells", J. Opt. Soc. Am. A 4(12), 1987.
    """
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(side)[:, np.newaxis], np.fft.rfftfreq(side))
    frequency[0, 0] = 1 / side
    shape = (count, 3, side, side // 2 + 1)
    spectrum = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / frequency
    picture = np.fft.irfft2(spectrum, s=(side, side))
    picture -= picture.mean(axis=(1, 2, 3), keepdims=True)
    return (picture / picture.std(axis=(1, 2, 3), keepdims=True)).astype(np.float32)
