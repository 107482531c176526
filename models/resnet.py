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

from torch import Tensor, nn

__all__ = ["WIDTHS", "ResidualBlock", "convolution", "resnet"]

WIDTHS = (64, 128, 256, 512)


class ResidualBlock(nn.Module):
    """``relu(body(x) + shortcut(x))``; the shortcut is a 1×1 convolution where shapes change."""

    def __init__(self, inputs: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        outputs = 4 * width if bottleneck else width
        if bottleneck:
            self.body = nn.Sequential(*convolution(inputs, width, 1), nn.ReLU(), *convolution(width, width, 3, stride),
                                      nn.ReLU(), *convolution(width, outputs, 1))
        else:
            self.body = nn.Sequential(*convolution(inputs, width, 3, stride), nn.ReLU(),
                                      *convolution(width, outputs, 3))
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(*convolution(inputs, outputs, 1, stride))
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        return self.relu(self.body(x) + self.shortcut(x))


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    """Return a convolution that keeps the size (before its stride) and its batch normalisation."""
    return (nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


def resnet(depth: int, side: int) -> nn.Sequential:
    """Build ResNet ``depth`` (18 or 50) for 3 x ``side`` x ``side`` images (32, 64 or 224), with untrained weights.

    Raises
    ------
    ValueError
        If there is no such network.
    """
    blocks = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
    if depth not in blocks or side not in (32, 64, 224):
        raise ValueError(f"ResNet must have depth 18 or 50 and a side of 32, 64 or 224, not {(depth, side)!r}")
    bottleneck = depth == 50
    if side == 32:
        stem = [*convolution(3, 64, 3), nn.ReLU()]
    else:
        stem = [*convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    body, inputs = [], 64
    for stage, (width, count) in enumerate(zip(WIDTHS, blocks[depth], strict=True)):
        for index in range(count):
            stride = 2 if stage and not index else 1
            body.append(ResidualBlock(inputs, width, stride, bottleneck=bottleneck))
            inputs = 4 * width if bottleneck else width
    return nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(inputs, 10 if side == 32 else 1000))
