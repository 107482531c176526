"""Inverted bottlenecks as MobileNetV2 has them: 1x1, depthwise 3x3, 1x1 with a residual."""

from tests.support.stacks import Stack
from tilewright.compiler.network.layers import Network

__all__ = ["inverted_bottlenecks"]


def inverted_bottlenecks(count: int, size: int = 14, narrow: int = 64, wide: int = 384) -> Network:
    """Return ``count`` bottlenecks of ``size`` x ``size`` pixels, of ``wide`` channels between ``narrow`` ones."""
    stack = Stack((narrow, size, size))
    stack.conv(narrow, 1)
    for _ in range(count):
        source = stack.last
        stack.conv(wide, 1)
        stack.depthwise()
        stack.conv(narrow, 1, residual=source)
    return stack.network("bottlenecks")
