"""Quantise before moving: ``Q(Transpose(x))`` becomes ``Transpose(Q(x))``, and ``Q(DQ(x))`` of one scale is x.

What only moves elements commutes with quantisation. Concat(DQ(a), DQ(b)) of different scales becomes a Concat of
tables that way, of which one of a Reshape or Transpose is made before this; an input of the model that is sliced, or
cut into phases, is quantised once, by the host.
"""

from dataclasses import replace

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxConcat,
    OnnxDequantizeLinear,
    OnnxGather,
    OnnxQuantizeLinear,
    OnnxTranspose,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.passes.recognise.equivalents.replacement import levels_of
from tilewright.compiler.passes.recognise.function_tables import same_parameters
from tilewright.compiler.passes.recognise.moves.float_movements import (
    is_movement,
    is_undone,
    moved_inputs,
    one_scale,
)

__all__ = ["RaiseQuantisation"]


class RaiseQuantisation(Pass):
    """Replace ``Q(f(x, …))`` by ``f(Q(x), …)`` where f moves x, and x is of integers or an input, or f a view of it."""

    def apply(self, graph: Graph) -> Graph:
        waiting = [node.output for node in reversed(graph.nodes) if isinstance(node.operator, OnnxQuantizeLinear)]
        made: dict[object, str] = {}
        while waiting:
            quantise = graph.producer(waiting.pop())
            if quantise is None or not one_scale(graph, quantise):
                continue
            move = graph.producer(quantise.inputs[0])
            if move is not None and is_undone(graph, quantise, move):
                graph = graph.removed(quantise).replace_all_uses(quantise.output, move.inputs[0])
            elif move is not None and (_looks_up(graph, move) or (
                    _can_rise(graph, move) and not _is_integer_concat(graph, quantise, move))):
                graph, new = _raised(graph, quantise, move, made)
                waiting += new
            elif not quantise.onnx_nodes and (before := _before_view(graph, quantise)) is not None:
                graph, new = before
                waiting += new
        return graph.without_unread()


def _before_view(graph: Graph, quantise: Node) -> tuple[Graph, list[str]] | None:
    """Return the graph with levels quantised anew before they are viewed otherwise or turned, and what does so.

    So a Concat finds the image where it lies. None if these are no such levels, or are read elsewhere.
    """
    dequantise = graph.producer(quantise.inputs[0])
    if dequantise is None or not isinstance(dequantise.operator, OnnxDequantizeLinear) \
            or graph.only_reader(dequantise.output) is not quantise:
        return None
    move = graph.producer(dequantise.inputs[0])
    if move is None or not isinstance(move.operator, OnnxView | OnnxTranspose) or move.inputs[0] in graph.constants \
            or graph.only_reader(move.output) is not dequantise or move.output in graph.outputs:
        return None
    source, kinds = graph.tensors[move.inputs[0]], [graph.tensors[each.output] for each in (dequantise, quantise)]
    names = f"{quantise.output}:floats", f"{quantise.output}:levels"
    graph = graph.with_tensors(*(replace(kind, name=name, shape=source.shape)
                                 for name, kind in zip(names, kinds, strict=True)))
    return graph.replaced(
        (move, dequantise, quantise), dequantise.with_(inputs=(source.name, *dequantise.inputs[1:]), output=names[0]),
        quantise.with_(inputs=(names[0], *quantise.inputs[1:]), output=names[1]),
        move.with_(inputs=(names[1], *move.inputs[1:]), output=quantise.output)), [names[1]]


def _is_integer_concat(graph: Graph, quantise: Node, move: Node) -> bool:
    """Tell whether this is a Concat of images or vectors that ONNX Runtime computes in integers, exactly as told."""
    shape = graph.tensors[move.output].shape or ()
    return bool(quantise.onnx_nodes) and isinstance(move.operator, OnnxConcat) and len(shape) in (2, 4) \
        and shape[0] == 1 and int(move.operator.axis) % len(shape) != 0 and all(
            (source := graph.producer(name)) is not None and isinstance(source.operator, OnnxDequantizeLinear)
            for name in move.inputs)


def _can_rise(graph: Graph, move: Node) -> bool:
    """Tell whether all that read a movement quantise it, so that it need not be made of floats too."""
    if not is_movement(graph, move) or graph.tensors[move.output].shape is None or move.output in graph.outputs:
        return False
    if not all(isinstance(reader.operator, OnnxQuantizeLinear) for reader in graph.readers(move.output)):
        return False
    return all(_is_source(graph, name, move) for name in moved_inputs(move))


def _looks_up(graph: Graph, move: Node) -> bool:
    """Tell whether a node takes rows of constant levels by computed numbers, and all that read it make such levels."""
    source = graph.producer(move.inputs[0])
    return isinstance(move.operator, OnnxGather) and source is not None and move.output not in graph.outputs \
        and len(graph.tensors[move.inputs[0]].shape or ()) > 1 \
        and isinstance(source.operator, OnnxDequantizeLinear) and graph.all_constant(source.inputs) and all(
            isinstance(reader.operator, OnnxQuantizeLinear)
            and same_parameters(graph, source.inputs[1:], reader.inputs[1:]) for reader in graph.readers(move.output))


def _is_source(graph: Graph, name: str, move: Node) -> bool:
    """Tell whether ``name`` is of integers, an input of the model, or what only a view reads; perhaps moved."""
    if name in graph.inputs:
        return graph.tensors[name].dtype == "float32"
    source = graph.producer(name)
    if source is None or not graph.tensors[name].shape:
        return False
    if isinstance(source.operator, OnnxDequantizeLinear):
        return levels_of(graph, name) is not None or _is_constant_part(graph, source, move)
    if is_movement(graph, source):
        return all(_is_source(graph, each, source) for each in moved_inputs(source))
    return isinstance(move.operator, OnnxView) and graph.only_reader(name) is move and name not in graph.outputs


def _is_constant_part(graph: Graph, source: Node, move: Node) -> bool:
    """Tell whether ``source`` is a constant that a Concat joins, of the levels that all that read this make of it."""
    return isinstance(move.operator, OnnxConcat) and graph.all_constant(source.inputs) and all(
        same_parameters(graph, source.inputs[1:], reader.inputs[1:]) for reader in graph.readers(move.output))


def _raised(graph: Graph, quantise: Node, move: Node, made: dict[object, str]) -> tuple[Graph, list[str]]:
    """Return the graph with the movement behind the quantisation, and the outputs of what quantises now."""
    kind = graph.tensors[quantise.output]
    values = tuple((graph.constants[name].dtype.name, graph.constants[name].tobytes())
                   for name in quantise.inputs[1:] if name)
    inputs: list[str] = []
    fresh: list[str] = []
    for name in moved_inputs(move):
        source = graph.producer(name)
        if source is not None and isinstance(source.operator, OnnxDequantizeLinear) \
                and same_parameters(graph, source.inputs[1:], quantise.inputs[1:]):
            levels = source.inputs[0]
            if levels in graph.constants:
                graph, levels = _with_levels(graph, quantise, levels)
            inputs.append(levels)
            continue
        key = (name, values)
        if key not in made:
            made[key] = f"{name}:quantised {len(made)}"
            fresh.append(made[key])
            graph = graph.with_tensors(Tensor(made[key], graph.tensors[name].shape, kind.dtype))
            before = Node(quantise.operator, (name, *quantise.inputs[1:]), made[key])
            place = graph.producer(name) or graph.readers(name)[0]
            graph = graph.replaced((place,), *((before, place) if graph.producer(name) is None else (place, before)))
        inputs.append(made[key])
    rest = move.inputs[len(inputs):]
    last = move.with_(inputs=(*inputs, *rest), output=quantise.output)
    graph = graph.replaced((quantise,), last)
    # Later ones want to know who reads what is left.
    return graph if graph.is_read(move.output) else graph.removed(move), fresh


def _with_levels(graph: Graph, quantise: Node, name: str) -> tuple[Graph, str]:
    """Return the graph with constant levels as a tensor of the parameters of a QuantizeLinear, and its name."""
    new = f"{name}:levels of {quantise.output}"
    kind = quantisation.activation(graph, quantise, quantise.output, *(*quantise.inputs[1:], "")[:2])
    levels = graph.constants[name]
    return graph.with_constants({new: levels}).with_tensors(
        Tensor(new, levels.shape, kind.dtype, kind.scale, kind.zero_point)), new
