"""QUANTIZE behind a CONCATENATION of floats stands before it: each part is quantised by itself, and levels are joined.

Where some of a concatenation's inputs have other scales, TensorFlow's converter joins floats and quantises all of them.
"""

from dataclasses import replace

from tilewright.compiler.tflite.stored.tensors import TfliteModel, TfliteOperator

__all__ = ["with_early_quantisation"]

_JOIN, _QUANTISE = "CONCATENATION", "QUANTIZE"


def with_early_quantisation(model: TfliteModel) -> TfliteModel:
    """Return the model with such concatenations of levels, whose results are the same."""
    readers: dict[int, list[TfliteOperator]] = {}
    for each in model.operators:
        for index in {*each.inputs}:
            readers.setdefault(index, []).append(each)
    joined = {operator.outputs[0]: operator for operator in model.operators
              if operator.kind == _JOIN and len(operator.outputs) == 1 and operator.outputs[0] not in model.outputs
              and min(operator.inputs, default=-1) >= 0 and not operator.options["FusedActivationFunction"]
              and model.tensors[operator.outputs[0]].dtype == "float32"
              and [each.kind for each in readers.get(operator.outputs[0], [])] == [_QUANTISE]}
    if not joined:
        return model
    tensors, operators = list(model.tensors), list[TfliteOperator]()
    for operator in model.operators:
        join = joined.get(operator.inputs[0]) if operator.kind == _QUANTISE and operator.inputs else None
        if operator.kind == _JOIN and operator.outputs[0] in joined:
            continue
        if join is None or len(operator.outputs) != 1:
            operators.append(operator)
            continue
        y, parts = tensors[operator.outputs[0]], list[int]()
        for index in join.inputs:
            part = replace(y, index=len(tensors), name=f"{y.name} (part {len(parts)})", shape=tensors[index].shape)
            tensors.append(part)
            parts.append(part.index)
            operators.append(replace(operator, index=-1, inputs=(index,), outputs=(part.index,)))
        operators.append(replace(join, index=operator.index, inputs=tuple(parts), outputs=operator.outputs))
    return replace(model, tensors=tuple(tensors), operators=tuple(operators))
