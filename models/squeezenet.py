"""SqueezeNet 1.1: fire modules, which squeeze by 1×1 and expand by 1×1 and 3×3 convolutions side by side.

Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size", arXiv 1602.07360,
2016; version 1.1 is the authors' own later one, with the 3×3 stem and earlier pooling.

    network         input        MACs           parameters
    squeezenet-224  3×224×224    349,151,936    1,235,496
    squeezenet-64   3×64×64      21,584,576     1,235,496
"""

from tilewright.models.export import INPUT
from tilewright.models.seeded_graph import SeededGraph

__all__ = ["CLASSES", "STAGES", "STEM", "fire", "squeezenet"]

STAGES = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256)))
"""Squeezed channels and channels of each expansion, by fire module; a max pooling stands before each stage."""

STEM, CLASSES = 64, 1000


def fire(graph: SeededGraph, x: str, name: str, squeezed: int, expanded: int) -> str:
    """Add both expansions of the squeezed input, one after the other."""
    x = graph.relu(graph.convolution(x, f"{name}.squeeze", squeezed, normalised=False))
    points = graph.relu(graph.convolution(x, f"{name}.points", expanded, normalised=False))
    squares = graph.relu(graph.convolution(x, f"{name}.squares", expanded, 3, normalised=False))
    return graph.concatenate(points, squares, name)


def squeezenet(graph: SeededGraph) -> str:
    """Add SqueezeNet 1.1, which takes images of any side from 17, and return its logits."""
    x = graph.relu(graph.convolution(INPUT, "stem", STEM, 3, stride=2, padding=0, normalised=False))
    for stage, modules in enumerate(STAGES, start=1):
        x = graph.max_pool(x, 3, 2, ceil=True)
        for index, (squeezed, expanded) in enumerate(modules, start=1):
            x = fire(graph, x, f"fire{stage}_{index}", squeezed, expanded)
    return graph.average(graph.relu(graph.convolution(x, "classifier", CLASSES, normalised=False)))
