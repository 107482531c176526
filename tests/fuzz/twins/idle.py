"""Rewritings that insert operators which do nothing."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.fuzz.twins.draft import Draft

__all__ = ["IDLE", "float_places", "level_places"]

_FLOATS = {"DequantizeLinear", "Conv", "Relu", "Add", "MatMul", "Gemm", "MaxPool", "AveragePool", "GlobalAveragePool",
           "Concat", "Mul", "Sigmoid", "Clip", "LeakyRelu", "Flatten", "Transpose", "HardSwish", "Resize"}
"""Of results of these that no integer goes into; `_places` looks."""

_LIMIT = 4
"""Places at most of one rewriting."""

_Insert = Callable[[Draft, str], str]


def _identity(draft: Draft, name: str) -> str:
    return draft.add("Identity", [name], name)


def _dropout(draft: Draft, name: str) -> str:
    return draft.add("Dropout", [name], name)


def _cast(draft: Draft, name: str) -> str:
    return draft.add("Cast", [name], name, to=TensorProto.FLOAT)


def _mul(draft: Draft, name: str) -> str:
    factors = [name, draft.constant(np.asarray(1, np.float32), "one")]
    draft.rng.shuffle(factors)
    return draft.add("Mul", factors, name)


def _div(draft: Draft, name: str) -> str:
    return draft.add("Div", [name, draft.constant(np.asarray(1, np.float32), "one")], name)


def _concat(draft: Draft, name: str) -> str:
    return draft.add("Concat", [name], name, axis=-1)


def _of_one(draft: Draft, name: str) -> str:
    """Sum, average or bound one tensor."""
    return draft.add(draft.rng.choice(["Sum", "Mean", "Max", "Min"]), [name], name)


def _nothing_more(draft: Draft, name: str) -> str:
    """Add nothing, take nothing away, or take it to the first power."""
    op = draft.rng.choice(["Add", "Sub", "Pow"])
    return draft.add(op, [name, draft.constant(np.asarray(op == "Pow", np.float32), "nothing")], name)


def _kept(draft: Draft, name: str) -> str:
    """Drop nothing, and say what is kept, which nobody reads."""
    node = helper.make_node("Dropout", [name], [draft.fresh(name), draft.fresh("unread")], draft.fresh("Dropout"))
    draft.graph.node.append(node)
    return node.output[0]


def float_places(draft: Draft) -> list[tuple[onnx.NodeProto, int]]:
    """Return where floats are read: what DQ makes, and what operators make of that alone."""
    known, readers = draft.constants(), draft.readers()
    floats: set[str] = set()
    for node in draft.graph.node:
        if node.op_type == "DequantizeLinear" or (node.op_type in _FLOATS and all(
                name in floats or (name in known and known[name].dtype == np.float32) or
                (name in known and position > 0 and node.op_type in ("Resize", "Clip"))
                for position, name in enumerate(node.input) if name)):
            floats.update(node.output)
    return [place for name in sorted(floats) for place in readers.get(name, ()) if _may_stand(place)]


def _may_stand(place: tuple[onnx.NodeProto, int]) -> bool:
    """Leave out the second inputs that are sizes and bounds."""
    node, index = place
    return index == 0 or node.op_type in ("Conv", "Gemm", "MatMul", "Add", "Mul", "Concat", "Sub", "Div")


def level_places(draft: Draft) -> list[tuple[onnx.NodeProto, int]]:
    """Return where levels are read by a DQ."""
    return [(node, 0) for levels in draft.levels() for node in levels.dqs]


def _with_ranks(draft: Draft) -> list[tuple[onnx.NodeProto, int]]:
    ranks = _ranks(draft)
    return [(node, index) for node, index in float_places(draft) if ranks.get(node.input[index])]


def _inserted(insert: _Insert, places: Callable[[Draft], list[tuple[onnx.NodeProto, int]]]) -> Callable[[Draft], int]:
    def rewrite(draft: Draft) -> int:
        found = places(draft)
        chosen = draft.rng.sample(found, min(len(found), draft.rng.randint(1, _LIMIT)))
        for node, index in chosen:
            node.input[index] = insert(draft, node.input[index])
        return len(chosen)

    return rewrite


def _reshape(draft: Draft) -> int:
    """Reshape a tensor to the shape that it has, which needs its rank."""
    ranks = _ranks(draft)
    places = (*float_places(draft), *level_places(draft))
    found = [(node, index) for node, index in places if ranks.get(node.input[index])]
    chosen = draft.rng.sample(found, min(len(found), draft.rng.randint(1, _LIMIT)))
    for node, index in chosen:
        name = node.input[index]
        same = draft.constant(np.zeros(ranks[name], np.int64), "shape")
        node.input[index] = draft.add("Reshape", [name, same], name)
    return len(chosen)


def _turned_twice(draft: Draft) -> int:
    """Transpose a tensor and transpose it back."""
    ranks = _ranks(draft)
    places = (*float_places(draft), *level_places(draft))
    found = [(node, index) for node, index in places if ranks.get(node.input[index], 0) > 1]
    chosen = draft.rng.sample(found, min(len(found), draft.rng.randint(1, _LIMIT)))
    for node, index in chosen:
        name, perm = node.input[index], list(range(ranks[node.input[index]]))
        draft.rng.shuffle(perm)
        there = draft.add("Transpose", [name], name, perm=perm)
        node.input[index] = draft.add("Transpose", [there], name, perm=[perm.index(axis) for axis in range(len(perm))])
    return len(chosen)


def _ranks(draft: Draft) -> dict[str, int]:
    """Return how many dimensions tensors have, as far as ONNX's own inference tells."""
    inferred = onnx.shape_inference.infer_shapes(draft.model).graph
    return {value.name: len(value.type.tensor_type.shape.dim)
            for value in (*inferred.value_info, *inferred.input) if value.type.tensor_type.HasField("shape")}


IDLE: dict[str, Callable[[Draft], int]] = {
    "identity": _inserted(_identity, float_places),
    "identity of levels": _inserted(_identity, level_places),
    "dropout": _inserted(_dropout, float_places),
    "cast": _inserted(_cast, float_places),
    "times one": _inserted(_mul, float_places),
    "by one": _inserted(_div, float_places),
    "of one": _inserted(_of_one, float_places),
    "nothing more": _inserted(_nothing_more, float_places),
    "mask unread": _inserted(_kept, float_places),
    "concat of one": _inserted(_concat, _with_ranks),
    "reshape": _reshape,
    "turned twice": _turned_twice,
}
"""By name: what each inserts in front of some readers."""
