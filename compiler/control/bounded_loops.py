"""A Loop or a Scan whose number of steps is known becomes the operators of its steps.

Source: ONNX's operator specification of Loop and Scan (from Scan-9 on, which has no batch of its own).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tilewright.compiler.control.bodies import Body, operators_of
from tilewright.compiler.control.node_writer import NodeWriter, attributes_of, node_name
from tilewright.compiler.control.step_limit import NotUnrolledError, require_few

__all__ = ["LOOPS", "unroll_loop"]

LOOPS = frozenset({"Loop", "Scan"})

_Constants = Mapping[str, np.ndarray]
_Shapes = Mapping[str, tuple[int, ...]]


def unroll_loop(node: onnx.NodeProto, shapes: _Shapes, constants: _Constants) -> tuple[NodeWriter, Body]:
    """Return the nodes and constants that compute what a Loop or a Scan does, and its body, whose constants they read.

    Raises
    ------
    NotUnrolledError
        If the number of its steps is not known, or there are too many.
    """
    return _loop(node, constants) if node.op_type == "Loop" else _scan(node, shapes)


def _loop(node: onnx.NodeProto, constants: _Constants) -> tuple[NodeWriter, Body]:
    name = node_name(node)
    body = Body(name, _body(node))
    given = [*node.input, "", ""]
    if (condition := given[1]) and condition not in constants:
        raise NotUnrolledError(f"its condition {condition!r} is known only when it runs",
                               "export the loop with a fixed number of steps")
    steps = 0
    if not condition or constants[condition].all():
        _require_no_break(body.graph)
        if not given[0] or given[0] not in constants:
            raise NotUnrolledError(f"its number of steps{f', {given[0]!r},' if given[0] else ''} is known only when it "
                                   "runs", f"fix it with --input-value {given[0] or 'NAME'}=N if an input tells it, or "
                                   "export the loop with a fixed number of steps")
        steps = max(0, int(constants[given[0]].reshape(-1)[0]))
    require_few(steps, operators_of(body.graph))
    write = NodeWriter(name)
    state = list(node.input[2:])
    kept: list[list[str]] = [[] for _ in body.graph.output[len(state) + 1:]]
    true = write.constant("goes on", np.array(True))
    for step in range(steps):
        number = write.constant(f"number {step}", np.array(step, np.int64))
        nodes, outputs = body.step(step, [number, true, *state])
        write.nodes += nodes
        state = outputs[1:len(state) + 1]
        for values, output in zip(kept, outputs[len(state) + 1:], strict=True):
            values.append(output)
    for value, output in zip(state, node.output, strict=False):
        if output:
            write.hand_on(value, output)
    _stack(write, kept, [0] * len(kept), node.output[len(state):])
    return write, body


def _require_no_break(graph: onnx.GraphProto) -> None:
    """Refuse a body that may end its loop before the last step."""
    goes_on, known = graph.output[0].name, {graph.input[1].name}
    known |= {tensor.name for tensor in graph.initializer if onnx.numpy_helper.to_array(tensor).all()}
    for node in graph.node:
        value = attributes_of(node).get("value")
        if (node.op_type == "Constant" and isinstance(value, onnx.TensorProto)
                and value.data_type == onnx.TensorProto.BOOL and onnx.numpy_helper.to_array(value).all()) or (
                node.op_type in ("Identity", "Cast") and node.input[0] in known):
            known |= set(node.output)
    if goes_on not in known:
        raise NotUnrolledError(f"its body computes {goes_on!r}, which may end it before its last step",
                               "export it as a loop with a fixed number of steps")


def _scan(node: onnx.NodeProto, shapes: _Shapes) -> tuple[NodeWriter, Body]:
    attributes, name = attributes_of(node), node_name(node)
    body = Body(name, _body(node))
    scanned = attributes["num_scan_inputs"]
    assert isinstance(scanned, int)
    states = len(node.input) - scanned
    if not 0 <= states <= len(body.graph.output) or len(body.graph.input) != len(node.input):
        raise NotUnrolledError(f"it has {len(node.input)} inputs, and its body {len(body.graph.input)}",
                               "export the model again with an opset of at least 9")
    inputs = list(node.input[states:])
    axes = _of_each(attributes, "scan_input_axes", scanned)
    lengths = {_extent(shapes, each, axis) for each, axis in zip(inputs, axes, strict=True)}
    if len(lengths) != 1 or None in lengths:
        raise NotUnrolledError(f"the number of its steps, which the shapes of {', '.join(map(repr, inputs))} tell, is "
                               "not known", "fix the shapes of the inputs with --shape")
    steps = next(iter(lengths)) or 0
    require_few(steps, operators_of(body.graph) + scanned)
    write = NodeWriter(name)
    back = _of_each(attributes, "scan_input_directions", scanned)
    results = len(body.graph.output) - states
    kept: list[list[str]] = [[] for _ in range(results)]
    state = list(node.input[:states])
    for step in range(steps):
        write.step = step
        slices = []
        for index, (each, axis) in enumerate(zip(inputs, axes, strict=True)):
            at = steps - 1 - step if back[index] else step
            slices.append(write.add("Gather", [each, write.constant(f"number {at}", np.array(at, np.int64))],
                                    f"slice of {body.graph.input[states + index].name}", axis=axis))
        nodes, outputs = body.step(step, [*state, *slices])
        write.nodes += nodes
        state = outputs[:states]
        for values, output in zip(kept, outputs[states:], strict=True):
            values.append(output)
    write.step = None
    for value, output in zip(state, node.output, strict=False):
        if output:
            write.hand_on(value, output)
    for values, backwards in zip(kept, _of_each(attributes, "scan_output_directions", results), strict=True):
        if backwards:
            values.reverse()
    _stack(write, kept, _of_each(attributes, "scan_output_axes", results), node.output[states:])
    return write, body


def _stack(write: NodeWriter, kept: Sequence[Sequence[str]], axes: Sequence[int], outputs: Sequence[str]) -> None:
    """Write the outputs of all steps side by side along a new axis."""
    for values, axis, output in zip(kept, axes, outputs, strict=False):
        if not output:
            continue
        if not values:
            raise NotUnrolledError(f"it has no step, and its output {output!r} no element", "leave it out of the model")
        at = write.constant(f"axis {axis}", np.array([axis], np.int64))
        each = [write.add("Unsqueeze", [value, at], f"{output} of step {step}") for step, value in enumerate(values)]
        write.hand_on(each[0] if len(each) == 1 else write.add("Concat", each, f"{output} of all steps", axis=axis),
                      output)


def _body(node: onnx.NodeProto) -> onnx.GraphProto:
    graph = attributes_of(node)["body"]
    assert isinstance(graph, onnx.GraphProto)
    return graph


def _of_each(attributes: Mapping[str, object], name: str, count: int) -> list[int]:
    """Return an attribute with a whole number for each of ``count``, 0 where the node does not say."""
    values = attributes.get(name)
    return [int(each) for each in values] if isinstance(values, list) and len(values) == count else [0] * count


def _extent(shapes: _Shapes, name: str, axis: int) -> int | None:
    shape = shapes.get(name, ())
    return shape[axis] if -len(shape) <= axis < len(shape) else None
