"""All kernels by operator name; each family is one file.

``KERNELS`` are operators that a model may have; ``CORE_KERNELS`` also those that the compiler makes of several.
"""

from collections.abc import Mapping

from tilewright.compiler.kernels.language.kernel import Kernel
from tilewright.compiler.kernels.levels.chain import StepChain
from tilewright.compiler.kernels.levels.halves_of_levels import HALVES_OF_LEVELS
from tilewright.compiler.kernels.levels.least_of_sums import LEAST_OF_SUMS
from tilewright.compiler.kernels.levels.levels_of_sums import LEVELS_OF_SUMS
from tilewright.compiler.kernels.levels.look_up import LOOK_UP
from tilewright.compiler.kernels.levels.normalisation_of_levels import NORMALISATION_OF_LEVELS
from tilewright.compiler.kernels.levels.pair_look_up import PAIR_LOOK_UP, QUOTIENT_OF_LEVELS
from tilewright.compiler.kernels.levels.parameters_of_sums import PARAMETERS_OF_SUMS
from tilewright.compiler.kernels.levels.response_of_levels import RESPONSE_OF_LEVELS
from tilewright.compiler.kernels.levels.softmax.log_softmax_of_levels import LOG_SOFTMAX_OF_LEVELS
from tilewright.compiler.kernels.levels.softmax.softmax_in_integers import SOFTMAX_IN_INTEGERS
from tilewright.compiler.kernels.levels.softmax.softmax_of_levels import SOFTMAX_OF_LEVELS
from tilewright.compiler.kernels.levels.softmax.softmax_of_words import SOFTMAX_OF_WORDS
from tilewright.compiler.kernels.levels.word_look_up import WORD_LOOK_UP
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

__all__ = ["CORE_KERNELS", "KERNELS"]

_FAMILIES: tuple[tuple[Kernel, ...], ...] = (
    arithmetic.KERNELS, quantisation.KERNELS, movement.KERNELS, resize.KERNELS, reduction.KERNELS, softmax.KERNELS,
    convolution.KERNELS, window_pooling.KERNELS, linear.KERNELS, normalisation.KERNELS, (products.QLINEAR_MUL,))
KERNELS: Mapping[str, Kernel] = {kernel.op: kernel for family in _FAMILIES for kernel in family}
CORE_KERNELS: Mapping[str, Kernel] = {**KERNELS, **{kernel.op: kernel for kernel in (
    LOOK_UP, PAIR_LOOK_UP, QUOTIENT_OF_LEVELS, WORD_LOOK_UP, SOFTMAX_OF_LEVELS, SOFTMAX_OF_WORDS,
    SOFTMAX_IN_INTEGERS, LOG_SOFTMAX_OF_LEVELS,
    RESPONSE_OF_LEVELS, NORMALISATION_OF_LEVELS, HALVES_OF_LEVELS, LEAST_OF_SUMS, LEVELS_OF_SUMS,
    PARAMETERS_OF_SUMS, StepChain(KERNELS))}}
