"""All kernels by operator name; each family is one file."""

from collections.abc import Mapping

from tilewright.compiler.core import arithmetic
from tilewright.compiler.core.kernel import Kernel

FAMILIES: tuple[tuple[Kernel, ...], ...] = (arithmetic.KERNELS,)
KERNELS: Mapping[str, Kernel] = {kernel.op: kernel for family in FAMILIES for kernel in family}
