"""SqueezeNet 1.1: fire modules, which squeeze by 1×1 and expand by 1×1 and 3×3 convolutions side by side.

Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size", arXiv 1602.07360,
2016; version 1.1 is the authors' own later one, with the 3×3 stem and earlier pooling.

    network         input        MACs           parameters
    squeezenet-224  3×224×224    349,151,936    1,235,496
    squeezenet-64   3×64×64      21,584,576     1,235,496
"""

import torch
from torch import Tensor, nn

__all__ = ["CLASSES", "STAGES", "STEM", "Fire", "squeezenet"]

STAGES = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256)))
"""Squeezed channels and channels of each expansion, by fire module; a max pooling stands before each stage."""

STEM, CLASSES = 64, 1000


class Fire(nn.Module):
    """Both expansions of the squeezed input, one behind the other."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(inputs, squeezed, 1), nn.ReLU())
        self.points = nn.Sequential(nn.Conv2d(squeezed, expanded, 1), nn.ReLU())
        self.squares = nn.Sequential(nn.Conv2d(squeezed, expanded, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        """Return the module's output."""
        x = self.squeeze(x)
        return torch.cat((self.points(x), self.squares(x)), dim=1)


def squeezenet() -> nn.Sequential:
    """Build SqueezeNet 1.1 with untrained weights; it takes images of any side from 17."""
    layers: list[nn.Module] = [nn.Conv2d(3, STEM, 3, 2), nn.ReLU()]
    inputs = STEM
    for stage in STAGES:
        layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        for squeezed, expanded in stage:
            layers.append(Fire(inputs, squeezed, expanded))
            inputs = 2 * expanded
    return nn.Sequential(*layers, nn.Conv2d(inputs, CLASSES, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
