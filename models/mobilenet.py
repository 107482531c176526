"""MobileNetV2: inverted residual blocks of a 1×1, a depthwise 3×3 and a linear 1×1 convolution.

Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018, width 1.0; the paper
has images from 96×96 to 224×224.

    network          input        MACs           parameters (batch normalisation folded)
    mobilenetv2-224  3×224×224    300,774,272    3,487,816
    mobilenetv2-96   3×96×96      56,289,152     3,487,816
"""

from torch import Tensor, nn

__all__ = ["CLASSES", "FEATURES", "STAGES", "STEM", "InvertedResidual", "convolution", "mobilenetv2"]

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, output channels, blocks, and the stride of the first of them."""

STEM, FEATURES, CLASSES = 32, 1280, 1000


class InvertedResidual(nn.Module):
    """``body(x)``, plus ``x`` where shapes allow; ``expansion`` times as many channels inside."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        expand = convolution(inputs, inner, 1) if expansion > 1 else []
        self.body = nn.Sequential(*expand, *convolution(inner, inner, 3, stride, groups=inner),
                                  *convolution(inner, outputs, 1)[:-1])
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        return x + self.body(x) if self.adds else self.body(x)


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """Return a convolution that keeps the size (before its stride), its batch normalisation and ReLU6."""
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU6()]


def mobilenetv2() -> nn.Sequential:
    """Build MobileNetV2 with untrained weights; it takes images of any side from 32."""
    layers, inputs = convolution(3, STEM, 3, 2), STEM
    for expansion, outputs, count, stride in STAGES:
        for index in range(count):
            layers.append(InvertedResidual(inputs, outputs, 1 if index else stride, expansion))
            inputs = outputs
    return nn.Sequential(*layers, *convolution(inputs, FEATURES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(FEATURES, CLASSES))
