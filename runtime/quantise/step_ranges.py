"""One range for all tensors of a kind of an unrolled recurrence, so that each of its steps is the same function.

The ranges are measured on the samples, as ONNX Runtime's quantiser measures those of single tensors (MinMax), and given
to it as its option TensorQuantOverrides.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime

from tilewright.compiler.control.step_names import kind_of, kinds_of

__all__ = ["shared_ranges"]

_SHAPED = {"Reshape", "Squeeze", "Unsqueeze", "Identity", "Transpose"}
"""Operators that give a whole tensor another shape."""


def shared_ranges(proto: onnx.ModelProto, feeds: Iterable[Mapping[str, np.ndarray]],
                  ) -> dict[str, list[dict[str, object]]]:
    """Return the override for each tensor of a float model whose kind has several.

    Parameters
    ----------
    proto : ModelProto
        As it is given to the quantiser.
    feeds : iterable of mapping of str to ndarray
        The samples.
    """
    kinds = kinds_of(dict.fromkeys(name for node in proto.graph.node for name in node.output))
    if not kinds:
        return {}
    _add_states(proto.graph, kinds)
    return {name: [{"rmin": np.float32(low), "rmax": np.float32(high)}]
            for kind, (low, high) in _measured(proto, kinds, feeds).items() for name in kinds[kind]}


def _add_states(graph: onnx.GraphProto, kinds: dict[str, list[str]]) -> None:
    """Add inputs that are the state before the first step to its kind: so both ends of a state have one scale.

    The quantiser gives what only has another shape the scale of what it reads.
    """
    constants = {tensor.name for tensor in graph.initializer}
    shaped = {value.name: value.name for value in graph.input if value.name not in constants}
    for node in graph.node:
        if node.op_type in _SHAPED and node.input[0] in shaped:
            source = shaped[node.output[0]] = shaped[node.input[0]]
            if (kind := kind_of(node.output[0])) in kinds and source not in kinds[kind]:
                kinds[kind].append(source)


def _measured(proto: onnx.ModelProto, kinds: Mapping[str, Sequence[str]],
              feeds: Iterable[Mapping[str, np.ndarray]]) -> dict[str, tuple[float, float]]:
    """Return least and greatest value of the floats of each kind, 0 among them."""
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    outputs = {value.name for value in model.graph.output}
    floats = _floats(proto)
    names = [name for each in kinds.values() for name in each if name in floats]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
                              for name in names if name not in outputs)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kind = {name: each for each, members in kinds.items() for name in members}
    ranges = {kind[name]: (0.0, 0.0) for name in names}
    for feed in feeds:
        for name, values in zip(names, session.run(names, dict(feed)), strict=True):
            low, high = ranges[kind[name]]
            ranges[kind[name]] = (min(low, float(values.min(initial=0))), max(high, float(values.max(initial=0))))
    return ranges


def _floats(proto: onnx.ModelProto) -> set[str]:
    """Return the names of the float tensors of a model."""
    inferred = onnx.shape_inference.infer_shapes(proto)
    return {value.name for value in (*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input)
            if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
