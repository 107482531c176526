"""VGG16: thirteen 3×3 convolutions in five stages, each stage closed by 2×2 max pooling.

Simonyan & Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015, configuration D.
``vgg16(224)`` is the published network with three fully connected layers and 1,000 classes; ``vgg16(32)`` is its usual
form for 32×32 images: batch normalisation behind every convolution, one fully connected layer, ten classes.

    network    input        MACs              parameters
    vgg16-224  3×224×224    15,470,264,320    138,357,544
    vgg16-32   3×32×32      313,201,664       14,719,818 (batch normalisation folded)
"""

from torch import nn

__all__ = ["HIDDEN", "STAGES", "vgg16"]

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
HIDDEN = 4096


def vgg16(side: int) -> nn.Sequential:
    """Build VGG16 for 3 x ``side`` x ``side`` images, 32 or 224, with untrained weights.

    Raises
    ------
    ValueError
        If ``side`` is neither.
    """
    if side not in (32, 224):
        raise ValueError(f"Side of VGG16's input must be 32 or 224, not {side!r}")
    small, layers, channels = side == 32, [], 3
    for stage in STAGES:
        for outputs in stage:
            layers.append(nn.Conv2d(channels, outputs, 3, padding=1, bias=not small))
            if small:
                layers.append(nn.BatchNorm2d(outputs))
            layers.append(nn.ReLU())
            channels = outputs
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    if small:
        return nn.Sequential(*layers, nn.Linear(channels, 10))
    return nn.Sequential(*layers, nn.Linear(channels * 7 * 7, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                         nn.Linear(HIDDEN, 1000))
