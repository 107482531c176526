"""A small one-stage object detector: two scales of outputs, the finer one of upsampled and joined features.

The shape of YOLOv3-tiny's head (Redmon & Farhadi, "YOLOv3: An Incremental Improvement", arXiv 1804.02767, 2018:
LeakyReLU, nearest upsampling, concatenation with earlier features) on residual blocks with SiLU, as in its successors.
The outputs are what the convolutions give: for each of three anchors a box, an objectness and twenty classes; they are
not decoded.

    network        input        MACs           parameters (batch normalisation folded)
    detector-224   3×224×224    162,394,624    359,398
    detector-96    3×96×96      29,827,584     359,398
"""

import torch
from torch import Tensor, nn

__all__ = ["ANCHORS", "CLASSES", "SLOPE", "WIDTHS", "Detector", "DetectorBlock", "convolution", "outputs"]

WIDTHS = (16, 32, 64, 128)
ANCHORS, CLASSES = 3, 20
SLOPE = 0.1
"""Of LeakyReLU below zero, as in YOLOv3."""


class DetectorBlock(nn.Module):
    """``x + body(x)``: half the channels by 1×1, all again by 3×3."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(convolution(channels, channels // 2, 1, nn.SiLU()),
                                  convolution(channels // 2, channels, 3, nn.SiLU()))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        return x + self.body(x)


class Detector(nn.Module):
    """Maps an image to the outputs at a sixteenth and at an eighth of its side."""

    def __init__(self) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        inputs = 3
        for index, width in enumerate(WIDTHS):
            down = convolution(inputs, width, 3, nn.SiLU(), stride=2)
            stages.append(nn.Sequential(down, DetectorBlock(width)) if index else down)
            inputs = width
        self.early, self.late = nn.Sequential(*stages[:3]), stages[3]
        fine, coarse = WIDTHS[2:]
        self.neck = convolution(coarse, fine, 1, nn.LeakyReLU(SLOPE))
        self.coarse = nn.Sequential(convolution(fine, coarse, 3, nn.LeakyReLU(SLOPE)), outputs(coarse))
        self.up = nn.Sequential(convolution(fine, fine // 2, 1, nn.LeakyReLU(SLOPE)), nn.Upsample(scale_factor=2))
        self.fine = nn.Sequential(convolution(fine // 2 + fine, fine, 3, nn.LeakyReLU(SLOPE)), outputs(fine))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the coarse and the fine output, (n, 75, side / 16, side / 16) and (n, 75, side / 8, side / 8)."""
        early = self.early(x)
        neck = self.neck(self.late(early))
        return self.coarse(neck), self.fine(torch.cat((self.up(neck), early), dim=1))


def convolution(inputs: int, channels: int, kernel: int, activation: nn.Module, stride: int = 1) -> nn.Sequential:
    """Return a convolution that keeps the size (before its stride), its batch normalisation and ``activation``."""
    return nn.Sequential(nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, bias=False),
                         nn.BatchNorm2d(channels), activation)


def outputs(inputs: int) -> nn.Conv2d:
    """Return the convolution that makes the outputs of all anchors."""
    return nn.Conv2d(inputs, ANCHORS * (5 + CLASSES), 1)
