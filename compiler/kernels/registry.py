"""All kernels by operator name; each family is one file."""

from collections.abc import Mapping

from tilewright.compiler.kernels.language.kernel import Kernel
from tilewright.compiler.kernels.operators import (
    arithmetic,
    convolution,
    linear,
    movement,
    normalisation,
    products,
    quantisation,
    reduction,
    resize,
    softmax,
    window_pooling,
)

__all__ = ["KERNELS"]

_FAMILIES: tuple[tuple[Kernel, ...], ...] = (
    arithmetic.KERNELS, quantisation.KERNELS, movement.KERNELS, resize.KERNELS, reduction.KERNELS, softmax.KERNELS,
    convolution.KERNELS, window_pooling.KERNELS, linear.KERNELS, normalisation.KERNELS, (products.QLINEAR_MUL,))
KERNELS: Mapping[str, Kernel] = {kernel.op: kernel for family in _FAMILIES for kernel in family}
