"""The activation that an operator of TensorFlow Lite ends with: bounds of its levels, or of its floats."""

import numpy as np

from tilewright.compiler.tflite.graph_builder import GraphBuilder, LevelNumbers
from tilewright.compiler.tflite.stored.tensors import TfliteOperator, TfliteTensor

__all__ = ["ACTIVATIONS", "clamped", "level_bounds", "put_result", "result_of"]

_LIMITS: dict[int, tuple[float, float] | None] = {0: None, 1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}
"""Of the schema's ActivationFunctionType: NONE, RELU, RELU_N1_TO_1, RELU6."""

ACTIVATIONS = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}


def level_bounds(activation: int, tensor: TfliteTensor) -> tuple[int, int] | None:
    """Return the least and the largest level of a result; None where saturation does the same."""
    limits = _LIMITS[activation]
    if limits is None:
        return None
    ends = np.iinfo(tensor.dtype)
    low, high = (int(np.clip(np.rint(np.float64(limit) / np.float64(tensor.scale)) + tensor.zero, ends.min, ends.max))
                 for limit in limits)
    return None if (low, high) == (ends.min, ends.max) else (low, high)


def put_result(builder: GraphBuilder, operator: TfliteOperator, name: str, levels: LevelNumbers | None = None) -> None:
    """Write real numbers to an operator's output, within the bounds of its activation."""
    index = operator.outputs[0]
    builder.write(index, result_of(builder, operator, name, levels, builder.target(index)))


def result_of(builder: GraphBuilder, operator: TfliteOperator, name: str, levels: LevelNumbers | None = None,
              output: str = "") -> str:
    """Return an operator's result, of real numbers ``name``, as its output has it; call it ``output`` if given."""
    tensor = builder.tensor(operator.outputs[0])
    activation = int(operator.options.get("FusedActivationFunction", 0))
    if activation not in _LIMITS:
        raise operator.refusal(f"it ends with activation {activation}", "convert the model with RELU or RELU6")
    if tensor.is_levels:
        bounds = level_bounds(activation, tensor)
        stored = builder.quantised(name, levels or LevelNumbers.of(tensor), "" if bounds else output, tensor.name)
        return stored if bounds is None else clamped(builder, stored, bounds, tensor, output)
    limits = _LIMITS[activation]
    if limits is None:
        return builder.node("Identity", [name], like=tensor.name, output=output)
    if activation == ACTIVATIONS["RELU"]:
        return builder.node("Relu", [name], like=tensor.name, output=output)
    return builder.node("Clip", [name, *(builder.constant(np.array(limit, np.float32), f"{tensor.name}:bound")
                                         for limit in limits)], like=tensor.name, output=output)


def clamped(builder: GraphBuilder, name: str, bounds: tuple[int, int], tensor: TfliteTensor, output: str = "") -> str:
    """Return levels within bounds."""
    constants = [builder.constant(np.array(bound, tensor.dtype), f"{tensor.name}:bound") for bound in bounds]
    return builder.node("Clip", [name, *constants], like=tensor.name, output=output)
