"""Rewritings of operators: a convolution in two by its output channels, products and sums as QLinear operators."""

from collections.abc import Callable

import numpy as np
import onnx

from tests.fuzz.twins.draft import Draft, attribute

__all__ = ["as_qlinear", "split_by_outputs"]


def _sole(draft: Draft, name: str, readers: dict[str, list[tuple[onnx.NodeProto, int]]]) -> onnx.NodeProto | None:
    """Return the one node that reads ``name``, which is no output."""
    found = readers.get(name, [])
    return found[0][0] if len(found) == 1 and name not in draft.outputs else None


def split_by_outputs(draft: Draft) -> int:
    """Cut convolutions in two by output channels; each part is quantised as the whole was, and both are joined."""
    known, makers, readers = draft.constants(), draft.makers(), draft.readers()
    found = []
    for conv in draft.graph.node:
        if conv.op_type != "Conv" or attribute(conv, "group", 1) != 1:
            continue
        behind = _sole(draft, conv.output[0], readers)
        relu = behind if behind is not None and behind.op_type == "Relu" else None
        q = _sole(draft, relu.output[0], readers) if relu is not None else behind
        constants = [makers.get(name) for name in conv.input[1:] if name]
        if q is not None and q.op_type == "QuantizeLinear" and all(
                dq is not None and dq.op_type == "DequantizeLinear" and all(name in known for name in dq.input if name)
                for dq in constants) and known[constants[0].input[0]].shape[0] > 1:
            found.append((conv, relu, q, constants))
    chosen = draft.some(found)
    for conv, relu, q, constants in chosen:
        _split(draft, conv, relu, q, constants, known)
    draft.drop([node for conv, relu, _, _ in chosen for node in (conv, relu) if node is not None])
    return len(chosen)


def _split(draft: Draft, conv: onnx.NodeProto, relu: onnx.NodeProto | None, q: onnx.NodeProto,
           constants: list[onnx.NodeProto], known: dict[str, np.ndarray]) -> None:
    channels = known[constants[0].input[0]].shape[0]
    cut = draft.rng.randrange(1, channels)
    parts = []
    for start, end in ((0, cut), (cut, channels)):
        inputs = [conv.input[0], *(_part(draft, dq, start, end, known) for dq in constants)]
        part = draft.add("Conv", inputs, conv.output[0])
        draft.graph.node[-1].attribute.extend(conv.attribute)
        if relu is not None:
            part = draft.add("Relu", [part], relu.output[0])
        levels = draft.add("QuantizeLinear", [part, *q.input[1:]], q.output[0], domain=q.domain)
        parts.append(draft.add("DequantizeLinear", [levels, *q.input[1:]], q.output[0], domain=q.domain))
    q.input[0] = draft.add("Concat", parts, conv.output[0], axis=1)


def _part(draft: Draft, dq: onnx.NodeProto, start: int, end: int, known: dict[str, np.ndarray]) -> str:
    """Return levels ``start`` to ``end`` of a constant along its first axis, dequantised."""
    names = []
    for index, name in enumerate(dq.input):
        along = index == 0 or (known[name].ndim == 1 and known[name].size > 1) if name else False
        names.append(draft.constant(known[name][start:end], name) if along else name)
    result = draft.add("DequantizeLinear", names, dq.output[0], domain=dq.domain)
    draft.graph.node[-1].attribute.extend(dq.attribute)
    return result


def as_qlinear(draft: Draft) -> int:
    """Write products and sums between DQ and Q as ONNX's QLinear operators, and ONNX Runtime's."""
    known, makers, readers = draft.constants(), draft.makers(), draft.readers()
    places = []
    for node in draft.graph.node:
        change = _QLINEAR.get(node.op_type)
        q = _sole(draft, node.output[0], readers)
        sources = [makers.get(name) for name in node.input if name]
        if change and q is not None and q.op_type == "QuantizeLinear" and len(q.input) == 3 and all(
                each is not None and each.op_type == "DequantizeLinear" and len(each.input) == 3 and
                all(name in known for name in each.input[1:]) for each in sources) and all(
                    name in known for name in q.input[1:]):
            places.append((node, q, sources))
    chosen = draft.some(places)
    done = [(node, q) for node, q, sources in chosen if _QLINEAR[node.op_type](draft, node, q, sources, known)]
    draft.drop([each for pair in done for each in pair])
    return len(done)


def _conv(draft: Draft, node: onnx.NodeProto, q: onnx.NodeProto, sources: list[onnx.NodeProto],
          known: dict[str, np.ndarray]) -> bool:
    x, w, *bias = sources
    if not _fits(x, w, q, known) or (bias and known.get(bias[0].input[0], np.zeros(0)).dtype != np.int32):
        return False
    if bias and not np.array_equal(known[bias[0].input[1]].reshape(-1) + np.zeros(1, np.float32),
                                   (known[x.input[1]] * known[w.input[1]]).reshape(-1) + np.zeros(1, np.float32)):
        return False
    if known[w.input[1]].size > 1 and attribute(w, "axis", 1) != 0:
        return False
    draft.add("QLinearConv", [*x.input, *w.input, *q.input[1:], *(each.input[0] for each in bias)], q.output[0],
              output=q.output[0])
    draft.graph.node[-1].attribute.extend(node.attribute)
    return True


def _matmul(draft: Draft, node: onnx.NodeProto, q: onnx.NodeProto, sources: list[onnx.NodeProto],
            known: dict[str, np.ndarray]) -> bool:
    a, b = sources
    if not _fits(a, b, q, known) or b.input[0] not in known or known[b.input[1]].size > 1:
        return False
    draft.add("QLinearMatMul", [*a.input, *b.input, *q.input[1:]], q.output[0], output=q.output[0])
    return True


def _add(draft: Draft, node: onnx.NodeProto, q: onnx.NodeProto, sources: list[onnx.NodeProto],
         known: dict[str, np.ndarray]) -> bool:
    a, b = sources
    kinds = {known[each.input[2]].dtype for each in (a, b, q)}
    if len(kinds) > 1 or any(known[name].size > 1 for each in (a, b, q) for name in each.input[1:]):
        return False
    draft.import_domain("com.microsoft")
    draft.add(f"QLinear{node.op_type}", [*a.input, *b.input, *q.input[1:]], q.output[0], output=q.output[0],
              domain="com.microsoft")
    return True


def _fits(x: onnx.NodeProto, w: onnx.NodeProto, q: onnx.NodeProto, known: dict[str, np.ndarray]) -> bool:
    """Tell whether ONNX Runtime has a kernel of these types: input and output alike, int8 by int8."""
    kinds = [known[each.input[2]].dtype for each in (x, w, q)]
    return kinds[0] == kinds[2] and kinds in ([np.int8] * 3, [np.uint8, np.int8, np.uint8], [np.uint8] * 3) and all(
        known[name].size == 1 for each in (x, q) for name in each.input[1:])


_QLINEAR: dict[str, Callable[..., bool]] = {"Conv": _conv, "MatMul": _matmul, "Add": _add, "Mul": _add}

