"""Build the networks that are too large to commit: seeded weights with realistic statistics, quantised, cached.

He initialisation keeps the variance from layer to layer; batch normalisation takes its mean and variance from a forward
pass over the calibration images, as training would. So activations use their int8 range at every layer, and the
arithmetic is put to the test although nothing was trained.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from tilewright.models import detector, export, large_file, mobilenet, resnet, squeezenet, vgg16
from tilewright.models.batch_statistics import set_statistics
from tilewright.models.images import images
from tilewright.models.seeded_graph import SeededGraph

__all__ = ["CALIBRATION_IMAGES", "NETWORKS", "SEED", "build", "calibration_images", "float_model"]

NETWORKS: dict[str, tuple[Callable[[SeededGraph, int], str | dict[str, str]], int]] = {
    "vgg16-32": (vgg16.vgg16, 32),
    "vgg16-224": (vgg16.vgg16, 224),
    "resnet18-32": (lambda graph, side: resnet.resnet(graph, 18, side), 32),
    "resnet18-224": (lambda graph, side: resnet.resnet(graph, 18, side), 224),
    "resnet50-224": (lambda graph, side: resnet.resnet(graph, 50, side), 224),
    "resnet50-64": (lambda graph, side: resnet.resnet(graph, 50, side), 64),
    "mobilenetv2-224": (lambda graph, side: mobilenet.mobilenetv2(graph), 224),
    "mobilenetv2-96": (lambda graph, side: mobilenet.mobilenetv2(graph), 96),
    "squeezenet-224": (lambda graph, side: squeezenet.squeezenet(graph), 224),
    "squeezenet-64": (lambda graph, side: squeezenet.squeezenet(graph), 64),
    "detector-224": (lambda graph, side: detector.detector(graph), 224),
    "detector-96": (lambda graph, side: detector.detector(graph), 96),
}
"""Functions that add each network to a graph and return its output, or several by name; and the side of its image."""

CALIBRATION_IMAGES = 8
SEED = 0


def float_model(name: str) -> onnx.ModelProto:
    """Return network ``name``, seeded, as a float32 ONNX model."""
    constructor, side = NETWORKS[name]
    graph = SeededGraph(SEED)
    ends = constructor(graph, side)
    model = graph.model(side, ends if isinstance(ends, dict) else {export.OUTPUT: ends})
    set_statistics(model, calibration_images(side))
    return model


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
