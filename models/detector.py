"""A small one-stage object detector: two scales of outputs, the finer one of upsampled and joined features.

The shape of YOLOv3-tiny's head (Redmon & Farhadi, "YOLOv3: An Incremental Improvement", arXiv 1804.02767, 2018:
LeakyReLU, nearest upsampling, concatenation with earlier features) on residual blocks with SiLU, as in its successors.
The outputs are what the convolutions give: for each of three anchors a box, an objectness and twenty classes; they are
not decoded.

    network        input        MACs           parameters (batch normalisation folded)
    detector-224   3×224×224    162,394,624    359,398
    detector-96    3×96×96      29,827,584     359,398
"""

from tilewright.models.export import INPUT
from tilewright.models.seeded_graph import SeededGraph

__all__ = ["ANCHORS", "CLASSES", "SLOPE", "WIDTHS", "detector", "detector_block"]

WIDTHS = (16, 32, 64, 128)
ANCHORS, CLASSES = 3, 20
SLOPE = 0.1
"""Of LeakyReLU below zero, as in YOLOv3."""


def detector_block(graph: SeededGraph, x: str, name: str) -> str:
    """Add ``x + body(x)``: half the channels by 1×1, all again by 3×3."""
    channels = graph.channels(x)
    y = graph.silu(graph.convolution(x, f"{name}.half", channels // 2))
    y = graph.silu(graph.convolution(y, f"{name}.whole", channels, 3))
    return graph.add(x, y, f"{name}.add")


def detector(graph: SeededGraph) -> dict[str, str]:
    """Add the detector and return its outputs, at a sixteenth and at an eighth of the image's side."""
    x, stages = INPUT, []
    for stage, width in enumerate(WIDTHS, start=1):
        x = graph.silu(graph.convolution(x, f"down{stage}", width, 3, stride=2))
        if stage > 1:
            x = detector_block(graph, x, f"block{stage}")
        stages.append(x)
    early, late = stages[-2:]
    fine, coarse = WIDTHS[2:]

    def leaky(x: str, name: str, channels: int, kernel: int) -> str:
        return graph.leaky_relu(graph.convolution(x, name, channels, kernel), SLOPE)

    def anchors(x: str, name: str) -> str:
        return graph.convolution(x, name, ANCHORS * (5 + CLASSES), normalised=False)

    neck = leaky(late, "neck", fine, 1)
    up = graph.upsample(leaky(neck, "up", fine // 2, 1))
    joined = graph.concatenate(up, early, "joined")
    return {"coarse": anchors(leaky(neck, "coarse_features", coarse, 3), "coarse_anchors"),
            "fine": anchors(leaky(joined, "fine_features", fine, 3), "fine_anchors")}
