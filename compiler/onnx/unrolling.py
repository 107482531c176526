"""A model without control flow: branches of constant conditions are taken, loops and recurrences unrolled.

What is unrolled may need shapes and constants that folding tells, and may have control flow inside, so that folding and
unrolling take turns.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.compiler.control.bounded_loops import LOOPS, unroll_loop
from tilewright.compiler.control.constant_inputs import constant_inputs
from tilewright.compiler.control.node_writer import node_name
from tilewright.compiler.control.recurrent import RECURRENT, unroll_recurrent
from tilewright.compiler.control.step_limit import NotUnrolledError
from tilewright.compiler.errors import UnsupportedModelError
from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.compiler.onnx.cleaning import clean_with_shapes
from tilewright.compiler.onnx.opset import converted
from tilewright.compiler.onnx.reading_notes import add_note
from tilewright.compiler.onnx.shapes import fix_batch

__all__ = ["StillThere", "has_control_flow", "unrolled"]

_CONTROL = LOOPS | RECURRENT | {"If"}
_LEAST_OPSET, _OPSET = 13, 17
"""Split takes its sizes as an input from the first on."""

_MOST_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class StillThere:
    """Why a node is not unrolled, as the middle of a sentence, and what to do, as its end."""

    reason: str
    way_out: str


def has_control_flow(graph: onnx.GraphProto) -> bool:
    """Tell whether a graph has control flow or recurrent operators."""
    return any(node.op_type in _CONTROL and node.domain in ("", "ai.onnx") for node in graph.node)


def unrolled(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, StillThere]]:
    """Return a model without the control flow that is known at compile time, and why other nodes of it stay, by name.

    The model itself is returned if there is none, or if its shapes are open. In another its batch is fixed and
    constants are folded; a note says what was unrolled.

    Raises
    ------
    BadModelError
        If it is none that can be read, or its types or shapes contradict each other.
    """
    if not has_control_flow(proto.graph):
        return proto, {}
    work = onnx.ModelProto()
    work.CopyFrom(proto)
    try:
        fix_batch(work)
    except UnsupportedModelError:
        return proto, {}
    work = _cleaned(_upgraded(work))
    refusals: dict[str, StillThere] = {}
    found: list[str] = []
    for _ in range(_MOST_ROUNDS):
        refusals.clear()
        new, count = _unroll_all(work, refusals), len(work.graph.node)
        found += new
        if not new and not refusals:
            break
        work = _cleaned(work)
        # What folding has made constant tells the shapes of what follows, and a branch that was chosen is more nodes.
        if not new and len(work.graph.node) == count:
            break
    if not found and len(refusals) == sum(map(_is_control, proto.graph.node)):
        return proto, refusals
    form = normalise(work)
    made = form.proto
    for note in form.notes:
        add_note(made, note)
    if found:
        add_note(made, f"unrolled over time: {', '.join(found)}")
    return made, refusals


def _cleaned(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a clean model with shapes; outputs of loops get names in place, since onnx-ir drops last ones without."""
    for node in proto.graph.node:
        if node.op_type in LOOPS:
            node.output[:] = [name or f"{node_name(node)}:output {index}" for index, name in enumerate(node.output)]
    return clean_with_shapes(proto)


def _is_control(node: onnx.NodeProto) -> bool:
    return node.op_type in _CONTROL and node.domain in ("", "ai.onnx")


def _upgraded(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of an opset in which what is written here is valid; as it is where onnx cannot convert it."""
    if next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), _OPSET) >= _LEAST_OPSET:
        return proto
    try:
        return converted(proto, _OPSET)
    except (RuntimeError, ValueError, onnx.version_converter.ConvertError):
        return proto


def _unroll_all(proto: onnx.ModelProto, refusals: dict[str, StillThere]) -> list[str]:
    """Unroll every node that can be, in place, and name each; add those that cannot to ``refusals``."""
    graph = proto.graph
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), _OPSET)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes = {value.name: tuple(extent.dim_value for extent in value.type.tensor_type.shape.dim)
              for value in (*graph.value_info, *graph.input, *graph.output)
              if value.type.tensor_type.HasField("shape")
              and all(extent.HasField("dim_value") for extent in value.type.tensor_type.shape.dim)}
    shapes |= {name: values.shape for name, values in constants.items()}
    read = _read(graph)
    nodes: list[onnx.NodeProto] = []
    found = []
    for node in graph.node:
        if not _is_control(node) or node.op_type == "If":
            nodes.append(node)
            if node.op_type == "If":
                refusals[node_name(node)] = StillThere("", "")
            continue
        try:
            if opset < _LEAST_OPSET:
                raise NotUnrolledError(f"the model's opset, {opset}, cannot be brought to {_OPSET}",
                                       f"export it again with opset {_OPSET}")
            known = constants | constant_inputs(node, graph, opset, constants)
            nodes += _stands_for(_with_outputs_read(node, read), shapes, known, graph)
            found.append(f"{node_name(node)} ({node.op_type})")
        except NotUnrolledError as error:
            nodes.append(node)
            refusals[node_name(node)] = StillThere(str(error), error.way_out)
    if found:
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    return found


def _read(graph: onnx.GraphProto) -> set[str]:
    """Return what the nodes of a graph read, those within it included, and its outputs."""
    found = {value.name for value in graph.output}
    for node in graph.node:
        found.update(node.input)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                found |= _read(inner)
    return found


def _with_outputs_read(node: onnx.NodeProto, read: Set[str]) -> onnx.NodeProto:
    """Return a node whose outputs that nothing reads have no names."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.name = node_name(node)
    made.output[:] = [name if name in read else "" for name in node.output]
    return made


def _stands_for(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]], constants: Mapping[str, np.ndarray],
                graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes that stand for one, and add their constants to the graph."""
    if node.op_type in RECURRENT:
        writer = unroll_recurrent(node, shapes, constants)
    else:
        writer, body = unroll_loop(node, shapes, constants)
        graph.initializer.extend(body.constants())
    graph.initializer.extend(writer.initializers())
    return writer.nodes
