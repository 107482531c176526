"""Rewritings of levels: their type, pairs that stand twice, the domain of Q and DQ, how scales and zeros are stated."""

from collections.abc import Sequence

import numpy as np
import onnx

from tests.fuzz.twins.draft import QUANTISATION, Draft, attribute

__all__ = [
    "along_an_axis", "doubled", "foreign", "own_pairs", "relabelled", "scales_restated", "zeros_restated"]

_OTHER = {np.dtype(np.int8): np.uint8, np.dtype(np.uint8): np.int8}


def relabelled(draft: Draft) -> int:
    """Store tensors as uint8 that are int8, and the other way round, with a zero point 128 away."""
    known, found = draft.constants(), []
    for levels in draft.levels():
        nodes = (levels.q, *levels.dqs)
        zeros = [_zero(node, known) for node in nodes]
        if all(each is not None and each.ndim == 0 and each.dtype in _OTHER for each in zeros) and not any(
                each.name == "output_dtype" for each in levels.q.attribute):
            found.append((nodes, zeros[0]))
    chosen = draft.some(found)
    for nodes, zero in chosen:
        other = _OTHER[zero.dtype]
        name = draft.constant(np.asarray(int(zero) + (128 if other is np.uint8 else -128), other), "zero")
        for node in nodes:
            node.input[:] = [*node.input[:2], name]
    return len(chosen)


def _zero(node: onnx.NodeProto, known: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return the zero point of a Q or of a DQ of what one makes, as a scalar; None if it is no constant or many."""
    if len(node.input) < 3 or not node.input[2]:
        return np.asarray(0, np.uint8)
    found = known.get(node.input[2])
    return found.reshape(()) if found is not None and found.size == 1 else found


def doubled(draft: Draft) -> int:
    """Put a second pair behind a pair, for all that read it or for some."""
    readers, outputs, known = draft.readers(), draft.outputs, draft.constants()
    places = [(levels.q, dq) for levels in draft.levels() for dq in levels.dqs
              if dq.output[0] not in outputs and readers.get(dq.output[0]) and _fixed(levels.q, known)]
    chosen = draft.some(places)
    for q, dq in chosen:
        second = _pair(draft, q, dq, dq.output[0])
        for node, index in draft.some(readers[dq.output[0]]):
            node.input[index] = second
    return len(chosen)


def own_pairs(draft: Draft) -> int:
    """Give each reader of a pair a pair of its own, Q and DQ or the DQ alone."""
    readers, outputs, known = draft.readers(), draft.outputs, draft.constants()
    places = [(levels.q, dq) for levels in draft.levels() for dq in levels.dqs
              if dq.output[0] not in outputs and len(readers.get(dq.output[0], ())) > 1 and _fixed(levels.q, known)]
    chosen = draft.some(places)
    for q, dq in chosen:
        alone = draft.rng.random() < 0.3
        for node, index in readers[dq.output[0]][1:]:
            node.input[index] = _copy(draft, dq, q.output[0]) if alone else _pair(draft, q, dq, q.input[0])
    return len(chosen)


def _fixed(q: onnx.NodeProto, known: dict[str, np.ndarray]) -> bool:
    return all(name in known for name in q.input[1:] if name)


def _pair(draft: Draft, q: onnx.NodeProto, dq: onnx.NodeProto, source: str) -> str:
    return _copy(draft, dq, _copy(draft, q, source))


def _copy(draft: Draft, node: onnx.NodeProto, source: str) -> str:
    result = draft.add(node.op_type, [source, *node.input[1:]], node.output[0], domain=node.domain)
    draft.graph.node[-1].attribute.extend(node.attribute)
    return result


def foreign(draft: Draft) -> int:
    """Move Q and DQ to the domain com.microsoft, all or some."""
    nodes = [node for node in draft.graph.node if node.op_type in QUANTISATION and node.domain in ("", "ai.onnx") and
             not {each.name for each in node.attribute} - {"axis"}]
    chosen = nodes if draft.rng.random() < 0.5 else draft.some(nodes)
    draft.import_domain("com.microsoft")
    for node in chosen:
        node.domain = "com.microsoft"
    return len(chosen)


def zeros_restated(draft: Draft) -> int:
    """Leave zero points out where they are what is meant without them, and state those that are left out."""
    known, makers = draft.constants(), draft.makers()
    places = []
    for node in draft.graph.node:
        if node.op_type not in QUANTISATION or attribute(node, "output_dtype"):
            continue
        if len(node.input) < 3 or not node.input[2]:
            kind = np.uint8 if node.op_type == "QuantizeLinear" else _kind(node, known, makers)
            if kind is not None:
                places.append((node, kind))
        elif (zero := known.get(node.input[2])) is not None and not zero.any() and (
                node.op_type == "DequantizeLinear" or zero.dtype == np.uint8):
            places.append((node, None))
    chosen = draft.some(places)
    for node, kind in chosen:
        rest: Sequence[str] = () if kind is None else [
            draft.constant(np.zeros(known[node.input[1]].shape if node.input[1] in known else (), kind), "zero")]
        node.input[:] = [*node.input[:2], *rest]
    return len(chosen)


def _kind(dq: onnx.NodeProto, known: dict[str, np.ndarray], makers: dict[str, onnx.NodeProto]) -> np.dtype | None:
    """Return the type of what a DQ without a zero point reads, if that is easily told."""
    if dq.input[0] in known:
        return known[dq.input[0]].dtype
    maker = makers.get(dq.input[0])
    if maker is None or maker.op_type != "QuantizeLinear":
        return None
    zero = _zero(maker, known)
    return None if zero is None else zero.dtype


def along_an_axis(draft: Draft) -> int:
    """Give constant levels that have one scale as many equal ones as they have channels."""
    known, readers, places = draft.constants(), draft.readers(), []
    for node in draft.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in known and known[node.input[0]].ndim > 1 and all(
                name in known and known[name].size == 1 for name in node.input[1:] if name) and not node.domain:
            operators = {reader.op_type for reader, _ in readers.get(node.output[0], ())}
            dense = operators and operators <= {"Gemm", "MatMul"} and known[node.input[0]].ndim == 2
            if dense or operators == {"Conv"}:
                places.append((node, 0 if "Conv" in operators else _columns(readers[node.output[0]])))
    chosen = draft.some(places)
    for node, axis in chosen:
        size = known[node.input[0]].shape[axis]
        for index in range(1, len(node.input)):
            if node.input[index]:
                node.input[index] = draft.constant(np.repeat(known[node.input[index]].reshape(1), size), "equal")
        left = [each for each in node.attribute if each.name != "axis"]
        del node.attribute[:]
        node.attribute.extend([*left, onnx.helper.make_attribute(
            "axis", axis - draft.rng.choice([0, known[node.input[0]].ndim]))])
    return len(chosen)


def _columns(readers: list[tuple[onnx.NodeProto, int]]) -> int:
    """Return the axis of the channels of a dense layer's weights."""
    return 0 if any(attribute(node, "transB", 0) for node, _ in readers) else 1


def scales_restated(draft: Draft) -> int:
    """Write the scale and zero point of a whole tensor as one of shape [1] instead of a scalar, or the other way."""
    known, places = draft.constants(), []
    for node in draft.graph.node:
        names = [name for name in node.input[1:] if name]
        if node.op_type in QUANTISATION and all(name in known and known[name].size == 1 for name in names) and (
                len({known[name].ndim for name in names}) == 1) and attribute(node, "axis") is None:
            places.append(node)
    chosen = draft.some(places)
    for node in chosen:
        for index in range(1, len(node.input)):
            if node.input[index]:
                array = known[node.input[index]]
                node.input[index] = draft.constant(array.reshape(() if array.ndim else (1,)), "restated")
    return len(chosen)
