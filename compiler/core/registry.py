"""All kernels by operator name; each family is one file."""

from collections.abc import Mapping

from tilewright.compiler.core import (
    arithmetic,
    convolution,
    linear,
    movement,
    normalisation,
    pooling,
    quantisation,
    quantised_product,
    reduction,
    resize,
    softmax,
)
from tilewright.compiler.core.kernel import Kernel

FAMILIES: tuple[tuple[Kernel, ...], ...] = (arithmetic.KERNELS, quantisation.KERNELS, movement.KERNELS, resize.KERNELS,
                                           reduction.KERNELS, softmax.KERNELS, convolution.KERNELS, pooling.KERNELS,
                                           linear.KERNELS, normalisation.KERNELS, (quantised_product.KERNEL,))
KERNELS: Mapping[str, Kernel] = {kernel.op: kernel for family in FAMILIES for kernel in family}
