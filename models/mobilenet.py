"""MobileNetV2: inverted residual blocks of a 1×1, a depthwise 3×3 and a linear 1×1 convolution.

Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018, width 1.0; the paper
has images from 96×96 to 224×224.

    network          input        MACs           parameters (batch normalisation folded)
    mobilenetv2-224  3×224×224    300,774,272    3,487,816
    mobilenetv2-96   3×96×96      56,289,152     3,487,816
"""

from tilewright.models.export import INPUT
from tilewright.models.seeded_graph import SeededGraph

__all__ = ["CLASSES", "FEATURES", "STAGES", "STEM", "inverted_residual", "mobilenetv2"]

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, output channels, blocks, and the stride of the first of them."""

STEM, FEATURES, CLASSES = 32, 1280, 1000


def inverted_residual(graph: SeededGraph, x: str, name: str, outputs: int, stride: int, expansion: int) -> str:
    """Add ``body(x)``, plus ``x`` where shapes allow; ``expansion`` times as many channels inside."""
    inputs = graph.channels(x)
    inner, y = inputs * expansion, x
    if expansion > 1:
        y = graph.relu6(graph.convolution(y, f"{name}.expand", inner))
    y = graph.relu6(graph.convolution(y, f"{name}.depthwise", inner, 3, stride=stride, groups=inner))
    y = graph.convolution(y, f"{name}.project", outputs)
    return graph.add(x, y, f"{name}.add") if stride == 1 and inputs == outputs else y


def mobilenetv2(graph: SeededGraph) -> str:
    """Add MobileNetV2, which takes images of any side from 32, and return its logits."""
    x = graph.relu6(graph.convolution(INPUT, "stem", STEM, 3, stride=2))
    for stage, (expansion, outputs, count, stride) in enumerate(STAGES, start=1):
        for index in range(1, count + 1):
            x = inverted_residual(graph, x, f"stage{stage}.{index}", outputs, stride if index == 1 else 1, expansion)
    x = graph.relu6(graph.convolution(x, "features", FEATURES))
    return graph.linear(graph.average(x), "fc", CLASSES)
