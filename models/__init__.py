"""Networks to compile, and the scripts that train, build and export them.

The small models, and those of MLPerf Tiny, are committed as ONNX files with their weights: finding one needs only
the standard library; torch and scikit-learn are needed to train again, never to use them. The large ones are built
with seeded weights on first use, which takes NumPy and ONNX Runtime, and kept in a folder of the caller's.
"""

import filecmp
import hashlib
from pathlib import Path

__all__ = ["BUILTIN", "FOLDER", "LARGE", "NAMES", "PUBLISHED", "builtin", "is_large", "large_file"]

FOLDER = Path(__file__).parent

BUILTIN = {
    "lenet5": "LeNet-5, 1×32×32: three 5×5 convolutions; int8, QDQ",
    "lenet5_accel": "LeNet-5 with each 5×5 as a pair of 3×3 for Winograd, 1×32×32; int8, QDQ",
    "lenet5_qoperator": "lenet5 as integer operators (QLinearConv, QGemm) with zero points; int8, QOperator",
}
"""Models that were trained here and are committed."""

PUBLISHED = {
    "mlperf-resnet8": "MLPerf Tiny's ResNet8 for CIFAR-10, 32×32×3; int8, QDQ",
    "mlperf-kws": "MLPerf Tiny's keyword spotting, DS-CNN, 49×10×1; int8, QDQ",
    "mlperf-vww": "MLPerf Tiny's visual wake words, MobileNetV1 of a quarter of the width, 96×96×3; int8, QDQ",
    "mlperf-ad": "MLPerf Tiny's anomaly detection, a dense autoencoder of 640 values; int8, QDQ",
}
"""Models that others published, committed unchanged; the file NOTICE names their source and licence.

Beside each lies the .tflite file that tf2onnx made it of.
"""

LARGE = {
    "vgg16-32": "VGG16, 3×32×32, ten classes; int8, QDQ",
    "vgg16-224": "VGG16, 3×224×224, as published; int8, QDQ",
    "resnet18-32": "ResNet18 with a 3×3 stem, 3×32×32, ten classes; int8, QDQ",
    "resnet18-224": "ResNet18, 3×224×224, as published; int8, QDQ",
    "resnet50-224": "ResNet50, 3×224×224, stride in the 3×3 convolutions; int8, QDQ",
    "resnet50-64": "ResNet50 as for 224×224, 3×64×64; int8, QDQ",
    "mobilenetv2-224": "MobileNetV2, 3×224×224, depthwise convolutions and ReLU6; int8, QDQ",
    "mobilenetv2-96": "MobileNetV2, 3×96×96; int8, QDQ",
    "squeezenet-224": "SqueezeNet 1.1, 3×224×224, concatenations; int8, QDQ",
    "squeezenet-64": "SqueezeNet 1.1, 3×64×64; int8, QDQ",
    "detector-224": "object detector of two scales, 3×224×224, SiLU, LeakyReLU, upsampling; int8, QDQ",
    "detector-96": "object detector of two scales, 3×96×96; int8, QDQ",
}
"""Models that are built on first use, with seeded weights; the number is the side of the image."""

_FAMILIES = {"vgg16": "vgg16", "resnet18": "resnet", "resnet50": "resnet", "mobilenetv2": "mobilenet",
             "squeezenet": "squeezenet", "detector": "detector"}
"""The module that builds a large model, by its name without the side."""

NAMES = (*BUILTIN, *PUBLISHED, *LARGE)
"""All models that have a name."""


def builtin(name: str) -> Path:
    """Return the ONNX file of the committed model ``name``, a key of ``BUILTIN`` or ``PUBLISHED``.

    Raises
    ------
    ValueError
        If there is no built-in model of that name.
    """
    if name not in (names := (*BUILTIN, *PUBLISHED)):
        raise ValueError(f"Built-in model must be one of {', '.join(names)}, not {name!r}")
    return FOLDER / f"{name}.onnx"


def large_file(name: str, folder: Path) -> Path:
    """Return where in ``folder`` the large model ``name`` lies once `models.large.build` has built it.

    It is in a folder named by a hash of the code that makes it: another recipe is another file.

    Raises
    ------
    ValueError
        If there is no large model of that name.
    """
    if name not in LARGE:
        raise ValueError(f"Large model must be one of {', '.join(LARGE)}, not {name!r}")
    modules = ("large", "images", _FAMILIES[name.rpartition("-")[0]], "seeded_graph", "batch_statistics", "export")
    recipe = b"".join((FOLDER / f"{module}.py").read_bytes() for module in modules)
    return folder / hashlib.sha256(recipe).hexdigest()[:12] / f"{name}.onnx"


def is_large(model: Path, folder: Path) -> bool:
    """Tell whether the file ``model`` is one of the large models in ``folder``, or a copy of one."""
    built = (large_file(name, folder) for name in LARGE)
    return any(file.is_file() and filecmp.cmp(model, file, shallow=False) for file in built)
