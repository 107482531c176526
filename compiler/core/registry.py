"""All kernels by operator name; each family is one file."""

from collections.abc import Mapping

from tilewright.compiler.core.kernel import Kernel

FAMILIES: tuple[tuple[Kernel, ...], ...] = ()
KERNELS: Mapping[str, Kernel] = {kernel.op: kernel for family in FAMILIES for kernel in family}
