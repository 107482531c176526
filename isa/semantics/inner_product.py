"""Winograd's inner product of 1968: the values of its parts, on whole arrays.

    sum x_k w_k  =  sum_j (x_2j + w_2j+1) (x_2j+1 + w_2j)  -  xi  -  eta

    xi  = sum_j x_2j x_2j+1     of the activations alone: one for all output channels, computed beside them
    eta = sum_j w_2j w_2j+1     of the weights alone: known beforehand, taken off the bias

One multiplication makes two products (S. Winograd, "A new algorithm for inner product", IEEE Transactions on Computers
C-17, 1968). In a dot product the pairs are neighbouring bytes of a run. In F(2x2, 3x3) they are neighbouring channels
of the transformed values, and the inverse transform, which is linear, is taken of all three sums:

    4 S + eta  =  sum_j Aᵀ ((V_2j + U_2j+1) ⊙ (V_2j+1 + U_2j)) A  -  Aᵀ (sum_j V_2j ⊙ V_2j+1) A

The left side is a multiple of four but for eta, and eta is the same for every tile, so the array takes the floor:
``floor((4 S + eta) / 4) = S + floor(eta / 4)``, and the bias is ``floor(eta / 4)`` less, for each of the four pixels.

**Width of the sums.** The bits that a floor of a quarter leaves, modulo 2**32, are bits 2 to 33: sums modulo 2**34 give
them exactly, however often the sums before have wrapped. Sums of runs need no more than 32 bits.

**Odd lengths.** A zero weight behind the last makes an even number of them; what is the activation there does not
matter: (x_2j + 0) (x_2j+1 + w_2j) - x_2j x_2j+1 = x_2j w_2j for every x_2j+1.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["fold_run_eta", "fold_tile_eta", "run_eta", "run_xi", "tile_eta", "tile_xi"]

_B_TRANSPOSED = np.array(((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)))
_G_DOUBLED = np.array(((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2)))
_A_TRANSPOSED = np.array(((1, 1, 1, 0), (0, 1, -1, -1)))
"""The matrices of `isa.numerics`; a test compares the two."""


def run_xi(runs: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return xi (...) of the activations (..., bytes) that a sum multiplies, in their order; bytes are even."""
    return _pairs(runs)


def run_eta(weights: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return eta (channels,) of the weights (channels, bytes) as the runs take them, with their padding of zeros."""
    return _pairs(weights)


def _planes_eta(planes: int) -> int:
    """Return how often eta is in a sum: of two ``planes`` of words once, and 256 times (`isa.words.word_planes`)."""
    return 257 if planes == 2 else 1


def fold_run_eta(bias: NDArray[np.int32], weights: NDArray[np.int8], planes: int = 1) -> NDArray[np.int32]:
    """Return the bias (channels,) that makes sums with eta into outputs: ``bias - eta``, wrapped to int32.

    Of two ``planes`` of words it is ``bias - 257 eta``.

    Parameters
    ----------
    bias : NDArray[np.int32]
        (channels,), of the operator.
    weights : NDArray[np.int8]
        (channels, bytes): all that one sum multiplies, over every command that adds to it.
    """
    return _wrapped(bias.astype(np.int64) - _planes_eta(planes) * run_eta(weights))


def tile_xi(patches: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return xi (..., 2, 2) of 4x4 patches (..., channels, 4, 4), as the inverse transform leaves it; channels even."""
    v = _B_TRANSPOSED @ patches.astype(np.int64) @ _B_TRANSPOSED.T
    return _inverse(v)


def tile_eta(kernels: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return eta (channels, 2, 2) of 3x3 kernels (channels, inputs, 3, 3), as the inverse transform leaves it.

    An odd number of inputs is taken as one more with a kernel of zeros.
    """
    if kernels.shape[1] % 2:
        kernels = np.concatenate([kernels, np.zeros_like(kernels[:, :1])], axis=1)
    u = _G_DOUBLED @ kernels.astype(np.int64) @ _G_DOUBLED.T
    return _inverse(u)


def fold_tile_eta(bias: NDArray[np.int32], kernels: NDArray[np.int8], planes: int = 1) -> NDArray[np.int32]:
    """Return the bias (channels, 2, 2) of a tile's pixels: ``bias - floor(eta / 4)``, wrapped to int32.

    Of two ``planes`` of words it is ``bias - floor(257 eta / 4)``.

    Parameters
    ----------
    bias : NDArray[np.int32]
        (channels,), of the operator.
    kernels : NDArray[np.int8]
        (channels, inputs, 3, 3): all that one sum multiplies, over every command that adds to it. Inputs of one
        command are paired with each other, so an odd number of them in any but the last needs zeros of its own.
    """
    return _wrapped(bias.astype(np.int64)[:, None, None] - (_planes_eta(planes) * tile_eta(kernels) >> 2))


def _pairs(values: NDArray[np.int8]) -> NDArray[np.int64]:
    products = values[..., 0::2].astype(np.int16) * values[..., 1::2]      # at most 2**14
    return np.asarray(products.sum(axis=-1, dtype=np.int64))


def _inverse(transformed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return Aᵀ (sum of products of neighbouring channels) A, not divided."""
    paired = (transformed[..., 0::2, :, :] * transformed[..., 1::2, :, :]).sum(axis=-3)
    return np.asarray(_A_TRANSPOSED @ paired @ _A_TRANSPOSED.T)


def _wrapped(values: NDArray[np.int64]) -> NDArray[np.int32]:
    return values.astype(np.int32)   # NumPy takes the lower bits
