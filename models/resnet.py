"""ResNet18 and ResNet50: residual blocks of two 3×3, or of 1×1, 3×3 and 1×1 convolutions.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016; in ResNet50 the stride is in the 3×3
convolution, as is common since. Inputs of 32×32 get the usual small stem: one 3×3 convolution, no pooling, and ten
classes; those of 64×64 the published stem and 1,000 classes, as for ImageNet in that size.

    network        input        MACs             parameters (batch normalisation folded)
    resnet18-224   3×224×224    1,814,073,344    11,684,712
    resnet18-32    3×32×32      555,422,720      11,169,162
    resnet50-224   3×224×224    4,089,184,256    25,530,472
    resnet50-64    3×64×64      335,691,776      25,530,472
"""

from tilewright.models.export import INPUT
from tilewright.models.seeded_graph import SeededGraph

__all__ = ["WIDTHS", "residual_block", "resnet"]

WIDTHS = (64, 128, 256, 512)


def residual_block(graph: SeededGraph, x: str, name: str, width: int, stride: int, *, bottleneck: bool) -> str:
    """Add ``relu(body(x) + shortcut(x))``; the shortcut is a 1×1 convolution where shapes change."""
    outputs = 4 * width if bottleneck else width
    if bottleneck:
        y = graph.relu(graph.convolution(x, f"{name}.conv1", width))
        y = graph.relu(graph.convolution(y, f"{name}.conv2", width, 3, stride=stride))
        y = graph.convolution(y, f"{name}.conv3", outputs)
    else:
        y = graph.relu(graph.convolution(x, f"{name}.conv1", width, 3, stride=stride))
        y = graph.convolution(y, f"{name}.conv2", outputs, 3)
    if stride > 1 or graph.channels(x) != outputs:
        x = graph.convolution(x, f"{name}.shortcut", outputs, stride=stride)
    return graph.relu(graph.add(y, x, f"{name}.add"))


def resnet(graph: SeededGraph, depth: int, side: int) -> str:
    """Add ResNet ``depth`` (18 or 50) for images of ``side`` x ``side`` (32, 64 or 224), and return its logits.

    Raises
    ------
    ValueError
        If there is no such network.
    """
    blocks = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
    if depth not in blocks or side not in (32, 64, 224):
        raise ValueError(f"ResNet must have depth 18 or 50 and a side of 32, 64 or 224, not {(depth, side)!r}")
    if side == 32:
        x = graph.relu(graph.convolution(INPUT, "stem", 64, 3))
    else:
        x = graph.max_pool(graph.relu(graph.convolution(INPUT, "stem", 64, 7, stride=2)), 3, 2, padding=1)
    for stage, (width, count) in enumerate(zip(WIDTHS, blocks[depth], strict=True), start=1):
        for index in range(1, count + 1):
            stride = 2 if stage > 1 and index == 1 else 1
            x = residual_block(graph, x, f"stage{stage}.{index}", width, stride, bottleneck=depth == 50)
    return graph.linear(graph.average(x), "fc", 10 if side == 32 else 1000)
