"""Builds the networks too large to commit: seeded weights with the statistics of real ones, quantised, cached.

He initialisation keeps the variance from layer to layer; batch normalisation takes its mean and variance from a forward
pass over the calibration images, as training would. So activations use their int8 range at every layer, and the
arithmetic is put to the test although nothing was trained. Needs the extra ``models`` (torch).
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

from tilewright.models import detector, export, large_file, mobilenet, resnet, squeezenet, vgg16
from tilewright.models.images import images

__all__ = [
    "CALIBRATION_IMAGES", "NETWORKS", "OUTPUTS", "SEED", "build", "calibration_images", "float_model", "initialise",
]

NETWORKS: dict[str, tuple[Callable[[int], nn.Module], int]] = {
    "vgg16-32": (vgg16.vgg16, 32),
    "vgg16-224": (vgg16.vgg16, 224),
    "resnet18-32": (lambda side: resnet.resnet(18, side), 32),
    "resnet18-224": (lambda side: resnet.resnet(18, side), 224),
    "resnet50-224": (lambda side: resnet.resnet(50, side), 224),
    "resnet50-64": (lambda side: resnet.resnet(50, side), 64),
    "mobilenetv2-224": (lambda side: mobilenet.mobilenetv2(), 224),
    "mobilenetv2-96": (lambda side: mobilenet.mobilenetv2(), 96),
    "squeezenet-224": (lambda side: squeezenet.squeezenet(), 224),
    "squeezenet-64": (lambda side: squeezenet.squeezenet(), 64),
    "detector-224": (lambda side: detector.Detector(), 224),
    "detector-96": (lambda side: detector.Detector(), 96),
}
OUTPUTS = dict.fromkeys(("detector-224", "detector-96"), ("coarse", "fine"))
"""Names of the outputs, where they are not the one that `models.export` names."""

CALIBRATION_IMAGES = 8
SEED = 0


def initialise(network: nn.Module, calibration: np.ndarray) -> None:
    """Give ``network`` He-normal weights, and its batch normalisations the statistics of ``calibration``."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.normal_(module.bias, std=0.1)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.2)
            module.momentum = None  # plain average over the batches
    network.train()
    with torch.no_grad():
        network(torch.from_numpy(calibration))
    network.eval()


def float_model(name: str) -> onnx.ModelProto:
    """Return network ``name``, seeded, as a float32 ONNX model."""
    constructor, side = NETWORKS[name]
    torch.manual_seed(SEED)
    network = constructor(side)
    initialise(network, calibration_images(side))
    return export.to_onnx(network, (1, 3, side, side), OUTPUTS.get(name, (export.OUTPUT,)))


def calibration_images(side: int) -> np.ndarray:
    """Return what gives the statistics and the ranges: float32 (n, 3, side, side)."""
    return images(CALIBRATION_IMAGES, side, SEED)


def build(name: str, folder: Path) -> Path:
    """Return the quantised ONNX file of network ``name``, made in ``folder`` unless it is there already.

    Raises
    ------
    ValueError
        If there is no such network.
    """
    target = large_file(name, folder)
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        plain, made = Path(scratch, "float.onnx"), Path(scratch, target.name)
        onnx.save(float_model(name), plain)  # from here on only the file: VGG16's weights are half a gigabyte
        export.quantize(plain, calibration_images(NETWORKS[name][1]), made)
        os.replace(made, target)
    return target
