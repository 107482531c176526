"""``python -m tilewright.models.train NAME …``: train on the digits, export, quantise, report accuracy.

Seeded and single-threaded: two runs on one machine give the same files. The figures are those of the last
epoch; nothing is selected by its test accuracy. It needs the extra ``train`` (torch, scikit-learn)
and takes seconds.
"""

import argparse
import io
import warnings
from pathlib import Path

import numpy as np
import torch
from onnx import ModelProto, load_from_string
from onnxruntime.quantization import QuantFormat
from torch import nn
from torch.nn import functional

from tilewright.models import FOLDER, data, export, lenet5
from tilewright.models.data import Digits

__all__ = [
    "BATCH", "CALIBRATION_IMAGES", "EPOCHS", "LEARNING_RATE", "NETWORKS", "QOPERATOR", "SHIFT", "WEIGHT_DECAY",
    "accuracy", "build", "main", "outputs", "to_onnx", "train",
]

NETWORKS = {"lenet5": lenet5.lenet5, "lenet5_accel": lenet5.lenet5_accel}
QOPERATOR = ("lenet5",)  # also written as <name>_qoperator.onnx

EPOCHS = 30
BATCH = 64
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 1e-3
SHIFT = 2  # pixels by which a training image may move in each direction
CALIBRATION_IMAGES = 320


def train(network: nn.Module, digits: Digits, rng: np.random.Generator) -> None:
    """Train ``network`` in place on ``digits``: AdamW, one learning-rate cycle, images randomly shifted."""
    images, labels = torch.tensor(digits.images), torch.tensor(digits.labels)
    background = float(images.min())
    padded = functional.pad(images, (SHIFT,) * 4, value=background)
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    steps = EPOCHS * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    network.train()
    for _ in range(EPOCHS):
        for chosen in np.array_split(rng.permutation(len(images)), steps // EPOCHS):
            dy, dx = rng.integers(0, 2 * SHIFT, size=2, endpoint=True)
            batch = padded[chosen, :, dy:dy + data.SIDE, dx:dx + data.SIDE]
            optimizer.zero_grad()
            functional.cross_entropy(network(batch), labels[chosen]).backward()
            optimizer.step()
            schedule.step()
    network.eval()


def to_onnx(network: nn.Module, shape: tuple[int, ...]) -> ModelProto:
    """Export ``network`` for inputs of the fixed ``shape`` (1, channels, height, width).

    The tracing exporter is used on purpose: the newer one writes the source path of every node into the file.
    """
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(network.eval(), (torch.zeros(shape),), buffer, dynamo=False, opset_version=export.OPSET,
                          input_names=[export.INPUT], output_names=[export.OUTPUT])
    return load_from_string(buffer.getvalue())


def accuracy(model: Path | ModelProto, digits: Digits) -> float:
    """Return the share of ``digits`` that ``model`` classifies correctly."""
    return float(np.mean(export.logits(model, digits.images).argmax(axis=1) == digits.labels))


def build(name: str) -> None:
    """Train network ``name``, write its ONNX files and print the accuracy before and after quantisation."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    training, test = data.load()
    data.write_samples(test)
    network = NETWORKS[name]()
    train(network, training, np.random.default_rng(0))

    model = to_onnx(network, (1, *test.images.shape[1:]))
    parameters = sum(p.numel() for p in network.parameters())
    print(f"{name}: {parameters} parameters, float32 accuracy {accuracy(model, test):.4f}")
    for target, form in outputs(name).items():
        export.quantize(model, training.images[:CALIBRATION_IMAGES], FOLDER / target, form)
        print(f"{target}: int8 accuracy {accuracy(FOLDER / target, test):.4f}")


def outputs(name: str) -> dict[str, QuantFormat]:
    """Return the files that are made from network ``name``, and the form of each."""
    files = {f"{name}.onnx": QuantFormat.QDQ}
    if name in QOPERATOR:
        files[f"{name}_qoperator.onnx"] = QuantFormat.QOperator
    return files


def main() -> None:
    """Build the networks named on the command line."""
    parser = argparse.ArgumentParser(description="Train, export and quantise built-in networks.")
    parser.add_argument("names", nargs="+", metavar="NAME", choices=NETWORKS, help=", ".join(NETWORKS))
    for name in parser.parse_args().names:
        build(name)


if __name__ == "__main__":
    main()
