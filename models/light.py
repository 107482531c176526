"""The published networks that onnx ships as structures without weights, with seeded weights, for tests.

onnx's ``light_*`` models have every weight as a ConstantOfShape, one value throughout, so that they say nothing about
arithmetic. Here each is a constant drawn as in `models.large`: He-normal kernels, and batch normalisations whose mean
and variance are those of a forward pass. They are float32, of opset 9, and take one image of 3×224×224.
"""

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
from onnx import NodeProto, numpy_helper

from tilewright.models.batch_statistics import set_statistics
from tilewright.models.images import images

__all__ = ["FOLDER", "LIGHT", "SIDE", "light"]

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"

LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
         "zfnet512")
"""The structures there are."""

SIDE = 224
"""Of the image that the statistics are taken from: one, since Reshapes inside fix the batch."""


def light(name: str, seed: int = 0) -> onnx.ModelProto:
    """Return the structure ``name``, one of ``LIGHT``, with weights drawn by ``seed``.

    Raises
    ------
    ValueError
        If there is no such structure.
    """
    if name not in LIGHT:
        raise ValueError(f"Structure must be one of {', '.join(LIGHT)}, not {name!r}")
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    _draw_weights(model, np.random.default_rng(seed))
    set_statistics(model, images(1, SIDE, seed))
    onnx.checker.check_model(model, full_check=True)
    return model


def _draw_weights(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    """Replace every ConstantOfShape by a constant of that shape, drawn as befits its reader."""
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    # Between a weight and its reader there may be an Unsqueeze.
    behind = {node.input[0]: node.output[0] for node in graph.node if node.op_type == "Unsqueeze"}
    readers = {name: (node, slot) for node in graph.node for slot, name in enumerate(node.input)}
    drawn = []
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape"]:
        weight = node.output[0]
        reader, slot = readers[behind.get(weight, weight)]
        values = _draw(reader, slot, tuple(map(int, shapes[node.input[0]])), rng)
        drawn.append(numpy_helper.from_array(values.astype(np.float32), weight))
        graph.node.remove(node)
    used = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    for field, content in ((graph.initializer, [*kept, *drawn]), (graph.input, inputs)):
        del field[:]
        field.extend(content)
    model.ir_version = 4  # from which on constants need not be inputs


def _draw(reader: NodeProto, slot: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return values for input ``slot`` of ``reader``."""
    if reader.op_type in ("Conv", "Gemm"):
        if slot == 2:
            return rng.normal(0, 0.1, shape)
        transposed = reader.op_type == "Conv" or any(each.name == "transB" and each.i for each in reader.attribute)
        terms = np.prod(shape[1:] if transposed else shape[:1])
        return rng.normal(0, np.sqrt(2 / terms), shape)
    scales = reader.op_type == "Mul" or (reader.op_type == "BatchNormalization" and slot in (1, 4))
    return rng.uniform(0.5, 1.5, shape) if scales else rng.normal(0, 0.2, shape)
