"""VGG16: thirteen 3×3 convolutions in five stages, each stage closed by 2×2 max pooling.

Simonyan & Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015, configuration D.
``vgg16(224)`` is the published network with three fully connected layers and 1,000 classes; ``vgg16(32)`` is its usual
form for 32×32 images: batch normalisation behind every convolution, one fully connected layer, ten classes.

    network    input        MACs              parameters
    vgg16-224  3×224×224    15,470,264,320    138,357,544
    vgg16-32   3×32×32      313,201,664       14,719,818 (batch normalisation folded)
"""

from tilewright.models.export import INPUT
from tilewright.models.seeded_graph import SeededGraph

__all__ = ["HIDDEN", "STAGES", "vgg16"]

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
HIDDEN = 4096


def vgg16(graph: SeededGraph, side: int) -> str:
    """Add VGG16 for images of ``side`` x ``side``, 32 or 224, and return its logits.

    Raises
    ------
    ValueError
        If ``side`` is neither.
    """
    if side not in (32, 224):
        raise ValueError(f"Side of VGG16's input must be 32 or 224, not {side!r}")
    small, x = side == 32, INPUT
    for stage, widths in enumerate(STAGES, start=1):
        for index, outputs in enumerate(widths, start=1):
            x = graph.relu(graph.convolution(x, f"conv{stage}_{index}", outputs, 3, normalised=small))
        x = graph.max_pool(x, 2, 2)
    x = graph.flatten(x)
    if small:
        return graph.linear(x, "fc", 10)
    x = graph.relu(graph.linear(x, "fc6", HIDDEN, pixels=7 * 7))
    x = graph.relu(graph.linear(x, "fc7", HIDDEN))
    return graph.linear(x, "fc8", 1000)
