"""Keep nodes from ONNX Runtime's fusion of integer kernels: it fuses no node whose float result the model puts out."""

import math
from collections.abc import Sequence

import onnx

__all__ = ["fused_kinds", "keep_outputs", "of_several_scales", "unfused_sentence", "with_outputs_of"]


def fused_kinds(model: onnx.ModelProto) -> list[list[onnx.NodeProto]]:
    """Return the nodes that integer kernels can take the place of: those between DequantizeLinear and QuantizeLinear.

    They are by kind: operator, and attributes that are stated, as a kernel lacks one of these.
    """
    dequantised = {node.output[0] for node in model.graph.node if node.op_type == "DequantizeLinear"}
    quantised = {node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    kinds: dict[tuple[str, frozenset[str]], list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        if dequantised.intersection(node.input) and quantised.intersection(node.output):
            stated = frozenset(attribute.name for attribute in node.attribute)
            kinds.setdefault((node.op_type, stated), []).append(node)
    return list(kinds.values())


def of_several_scales(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the nodes that read or make levels of several scales, and are between Q and DQ.

    ONNX Runtime fuses them, and the integer kernel then refuses the scales when it runs. Weights may have several.
    """
    constants = {each.name: each for each in model.graph.initializer}

    def several(node: onnx.NodeProto) -> bool:
        scale = constants.get(node.input[1])
        return scale is not None and math.prod(scale.dims) > 1

    read = {node.output[0] for node in model.graph.node
            if node.op_type == "DequantizeLinear" and node.input[0] not in constants and several(node)}
    made = {node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear" and several(node)}
    return [node for kind in fused_kinds(model) for node in kind
            if read.intersection(node.input) or made.intersection(node.output)]


def with_outputs_of(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    """Return the model with the results of ``nodes`` among its outputs."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    known = {value.name for value in changed.graph.output}
    changed.graph.output.extend(onnx.helper.make_empty_tensor_value_info(node.output[0]) for node in nodes
                                if node.output[0] not in known)
    return changed


def unfused_sentence(names: Sequence[str]) -> str:
    """Return the sentence about nodes that were kept from the fusion."""
    listed = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
    count = f"{len(names)} node{'s' * (len(names) > 1)}"
    return (f"ONNX Runtime's own fusion makes an invalid model of {count} ({listed}): there the reference is its float "
            "kernel, unfused, with its result quantised")


def keep_outputs(model: onnx.ModelProto, original: onnx.ModelProto) -> None:
    """Leave the model, in place, the outputs of ``original`` alone."""
    names = {value.name for value in original.graph.output}
    kept = [value for value in model.graph.output if value.name in names]
    del model.graph.output[:]
    model.graph.output.extend(kept)
