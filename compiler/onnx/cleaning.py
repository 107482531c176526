"""Simplify ONNX's graph: inline functions, fold constants within limits, and remove nodes that compute nothing."""

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import onnx
import onnx.inliner
import onnx_ir as ir
import onnxscript.optimizer
from onnx_ir.passes.common import (
    IdentityEliminationPass,
    LiftConstantsToInitializersPass,
    RemoveInitializersFromInputsPass,
    RemoveUnusedNodesPass,
)

from tilewright.compiler.errors import BadModelError, UnsupportedModelError
from tilewright.compiler.network.image_forms import FORMS
from tilewright.compiler.normal.constant_levels import of_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.folding import by_runtime, result
from tilewright.compiler.normal.rules.normal_form import SHAPED_RULES
from tilewright.compiler.normal.values import constant, is_constant
from tilewright.compiler.onnx.shapes import first_line, infer_shapes
from tilewright.compiler.onnx.top_one import with_extremes

__all__ = ["clean", "clean_with_shapes", "expand_functions", "inline_functions", "is_function", "name_results",
           "rename_images"]

_FOLDED_ELEMENTS = 2**22
"""Largest result of a node that is computed while compiling."""

_UNSHAPED_ELEMENTS = 2**16
_GROWING = {"Expand", "Tile", "Range", "ConstantOfShape", "OneHot", "Pad", "CenterCropPad", "Resize", "Upsample", "If",
            "Loop", "Scan", "SequenceMap", "EyeLike", "Compress", "BlackmanWindow", "HannWindow", "HammingWindow",
            "MelWeightMatrix", "DFT", "STFT", "MaxUnpool", "ConvTranspose", "Col2Im"}


_FOLDING = frozenset({"Constant", "ConstantOfShape", "Mod", "Range", "Shape", "Size"})
"""Operators of shapes, which are known: they fold."""


def inline_functions(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its functions inlined.

    Raises
    ------
    UnsupportedModelError
        If a function calls itself.
    """
    if not proto.functions:
        return proto
    calls = {(f.domain, f.name): {(node.domain, node.op_type) for node in f.node} for f in proto.functions}
    while leaves := [key for key, called in calls.items() if not called & calls.keys()]:
        for key in leaves:
            del calls[key]
    if calls:
        _, name = next(iter(calls))
        raise UnsupportedModelError(f"Model must have no functions that call themselves, not {name!r}")
    try:
        return onnx.inliner.inline_local_functions(proto)
    except (ValueError, RuntimeError) as error:
        raise BadModelError(f"Functions of the model must match their calls: {first_line(error)}") from error


def expand_functions(proto: onnx.ModelProto, known: Collection[str]) -> onnx.ModelProto:
    """Return the model with operators that ONNX defines as functions of others expanded into those.

    Only operators that are not ``known``, or have further outputs that are used, and only where all that comes of them
    is known, or may be folded.
    """
    known = {*known, *_FOLDING}
    read = {name for node in proto.graph.node for name in node.input} | {value.name for value in proto.graph.output}
    versions = {each.domain: each.version for each in proto.opset_import}
    wanted = {(node.domain, node.op_type) for node in proto.graph.node
              if (node.op_type not in known or any(name in read for name in node.output[1:] if name))
              and is_function(node, versions)}
    for each in sorted(wanted):
        expanded = _expanded(_typed(proto), each, known, versions)
        if {node.op_type for node in expanded.graph.node} - {node.op_type for node in proto.graph.node} <= known:
            for field in ("output", "value_info"):
                expanded.graph.ClearField(field)
                getattr(expanded.graph, field).extend(getattr(proto.graph, field))
            proto = expanded
    return proto


def _typed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with every type that can be told, which some functions depend on."""
    typed = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    inputs = {value.name for value in typed.graph.input}
    typed.graph.value_info.extend(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                                  for tensor in typed.graph.initializer if tensor.name not in inputs)
    return typed


def _expanded(proto: onnx.ModelProto, function: tuple[str, str], known: Collection[str],
              versions: Mapping[str, int]) -> onnx.ModelProto:
    """Return the model without that operator, and without those in its definition that are functions and not known."""
    before, done = {(node.domain, node.op_type) for node in proto.graph.node}, set()
    todo = {function}
    while todo:
        for node in proto.graph.node:
            if (node.domain, node.op_type) in todo:
                _state_defaults(node, versions)
        try:
            proto = onnx.inliner.inline_selected_functions(proto, sorted(todo), False, True)
        except (ValueError, RuntimeError):
            return proto    # of types that nothing tells; then it is refused by its name
        done |= todo
        todo = {(node.domain, node.op_type) for node in proto.graph.node
                if node.op_type not in known and is_function(node, versions)} - before - done
    return proto


def _state_defaults(node: onnx.NodeProto, versions: Mapping[str, int]) -> None:
    """Give a node the attributes that it leaves out: what is expanded would be without a value there."""
    schema, known = _schema(node, versions), {attribute.name for attribute in node.attribute}
    node.attribute.extend(attribute.default_value for name, attribute in schema.attributes.items()
                          if name not in known and attribute.default_value.name == name)


def _schema(node: onnx.NodeProto, versions: Mapping[str, int]) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(node.op_type, versions.get(node.domain, versions.get("", 1)))


def is_function(node: onnx.NodeProto, versions: Mapping[str, int]) -> bool:
    """Tell whether ONNX defines an operator as a function of others, in opsets of these ``versions`` by domain."""
    if node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type):
        return False
    try:
        schema = _schema(node, versions)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def name_results(proto: onnx.ModelProto) -> None:
    """Name the results that nodes of any number of results leave unnamed, in place: Split and Loop count theirs.

    onnx-ir drops those at the end, and a Split into two would be one into one.
    """
    versions = {each.domain: each.version for each in proto.opset_import}
    graphs = [proto.graph]
    for graph in graphs:
        for node in graph.node:
            graphs += [each for attribute in node.attribute for each in (attribute.g, *attribute.graphs) if each.node]
            if "" in node.output and any(node.output):
                _name_results_of(node, versions)


def rename_images(proto: onnx.ModelProto) -> dict[str, str]:
    """Rename tensors that are called as the image of another one would be, in place; return the new names by the old.

    What a user feeds or gets keeps its name: then the other one is renamed, if that is not public too.
    """
    graphs = [proto.graph]
    for graph in graphs:
        graphs += [each for node in graph.node for attribute in node.attribute
                   for each in (attribute.g, *attribute.graphs) if each.node]
    nodes = [node for graph in graphs for node in graph.node]
    known = {name for node in nodes for name in (*node.input, *node.output)} | {
        each.name for graph in graphs for each in (*graph.input, *graph.output, *graph.initializer)}
    public = {each.name for each in (*proto.graph.input, *proto.graph.output)}
    renamed: dict[str, str] = {}
    for name in sorted(known):
        stem = next((name.removesuffix(form.suffix) for form in FORMS if name.endswith(form.suffix)), name)
        old = name if name not in public else stem
        if stem == name or stem not in known or old in public or stem in renamed:
            continue
        new = old.replace(":", "_")
        while new in known:
            new += "_"
        renamed[old] = new
        known = known | {new}
    if renamed:
        for node in nodes:
            node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [renamed.get(name, name) for name in node.output]
        for graph in graphs:
            for each in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
                each.name = renamed.get(each.name, each.name)
    return renamed


def _name_results_of(node: onnx.NodeProto, versions: Mapping[str, int]) -> None:
    try:
        results = _schema(node, versions).outputs
    except onnx.defs.SchemaError:
        return
    if results and results[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic:
        base = next(filter(None, node.output))
        for index, name in enumerate(node.output):
            if not name and index >= len(results) - 1:
                node.output[index] = f"{base} unnamed {index}"


def clean(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Fold what is constant, except quantisation itself, and drop what computes nothing.

    Raises
    ------
    BadModelError
        If the model is none that can be read.
    """
    try:
        return with_extremes(_with_gathers(ir.to_proto(_cleaned(ir.from_proto(proto)))))
    except (ir.serde.SerdeError, ir.passes.PassError, ValueError, TypeError, LookupError, ArithmeticError,
            RuntimeError) as error:
        # The last ones are of NumPy, on what the folded nodes make of broken constants.
        raise BadModelError(f"Model must be valid ONNX; the reader says: {first_line(error)}") from error


def clean_with_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return :func:`clean`'s result with the shape of every tensor that ONNX's rules tell.

    They are inferred once; and once more if what was folded, as the shape of a Reshape, tells those of what follows.

    Raises
    ------
    BadModelError
        If the model is none that can be read, or its types or shapes contradict each other.
    """
    cleaned = clean(infer_shapes(proto))
    known = {value.name for value in (*cleaned.graph.value_info, *cleaned.graph.output, *cleaned.graph.input)
             if _is_static(value.type.tensor_type)}
    told = all(name in known for node in cleaned.graph.node for name in node.output if name)
    return cleaned if told else infer_shapes(cleaned)


def _is_static(kind: onnx.TypeProto.Tensor) -> bool:
    return kind.HasField("shape") and all(extent.HasField("dim_value") for extent in kind.shape.dim)


def _cleaned(model: ir.Model) -> ir.Model:
    lift = LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)
    RemoveInitializersFromInputsPass()(model)
    lift(model)
    if any(node.op_type == "Identity" for node in model.graph):
        _make_copies_floats(Edit(model.graph))
    with np.errstate(all="ignore"):     # infinities are results
        onnxscript.optimizer.fold_constants(model, onnx_shape_inference=False, should_fold=_should_fold)
        while _fold_by_runtime(Edit(model.graph)):
            onnxscript.optimizer.fold_constants(model, onnx_shape_inference=False, should_fold=_should_fold)
    if any(node.op_type in ("Expand", "Tile") for node in model.graph):
        edit = Edit(model.graph)
        for rule in SHAPED_RULES:
            rule.apply(edit)
    lift(model)
    with _branches_apart(model):
        IdentityEliminationPass()(model)
    RemoveUnusedNodesPass()(model)
    return model


def _fold_by_runtime(edit: Edit) -> bool:
    """Compute the nodes of constants that ONNX's reference computes by other rules; tell whether there were any."""
    found = False
    for node in edit.nodes():
        if not by_runtime(node) or node.domain not in ("", "ai.onnx") or len(node.outputs) != 1 \
                or not all(each is None or is_constant(each) for each in node.inputs):
            continue
        elements = _elements(node)
        made = None if elements is None or elements > _FOLDED_ELEMENTS else \
            result(node, [constant(each) for each in node.inputs], edit.opset)
        if made is not None:
            edit.replace(node, edit.constant(made, node.outputs[0].name))
            found = True
    return found


def _make_copies_floats(edit: Edit) -> None:
    """Let each Identity read the floats that its dequantised constant is: an output of the model is no levels."""
    for node in edit.nodes():
        held = of_constant(node.inputs[0]) if node.op_type == "Identity" else None
        if held is not None:
            node.replace_input_with(0, edit.constant(held.real, node.outputs[0].name))


@contextmanager
def _branches_apart(model: ir.Model) -> Iterator[None]:
    """Let no pass look into the branches of an If while the block runs.

    There, an Identity may be what makes a value of the graph around it an output of the branch: it cannot go.
    """
    nodes = [(node, dict(node.attributes)) for node in model.graph
             if any(each.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
                    for each in node.attributes.values())]
    for node, _ in nodes:
        node.attributes.clear()
    yield
    for node, attributes in nodes:
        node.attributes.update(attributes)


def _with_gathers(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Make each GatherND of a grid, by constants, a Gather for each of its axes, in place: x[:, [2, 1, 0]] becomes one.

    Adaptive pooling, as torch exports it, takes rows and columns so.
    """
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    for node in proto.graph.node:
        indices = constants.get(node.input[1]) if node.op_type == "GatherND" and len(node.input) == 2 else None
        grid = [] if indices is None or not indices.dims or any(each.i for each in node.attribute) \
            else _grid(onnx.numpy_helper.to_array(indices))
        x = node.input[0] if grid else ""
        for number, (axis, values) in enumerate(grid):
            name = f"{node.output[0]}:indices {number}"
            proto.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
            output = node.output[0] if number == len(grid) - 1 else f"{node.output[0]}:axis {number}"
            title = node.name if number == len(grid) - 1 or not node.name else f"{node.name}:{number}"
            nodes.append(onnx.helper.make_node("Gather", [x, name], [output], name=title, axis=axis))
            x = output
        if not grid:
            nodes.append(node)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return proto


def _grid(indices: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return the axis and the indices of a Gather for each coordinate of ``indices``, one after the other.

    Empty if one of them depends on axes of the result that belong to another.
    """
    count = indices.shape[-1]
    found: list[tuple[int, np.ndarray]] = []
    first = 0
    for number in range(count):
        values = indices[..., number]
        varying = [axis for axis in range(values.ndim) if (values != values.take([0], axis)).any()]
        stop = values.ndim if number == count - 1 else max(varying, default=first - 1) + 1
        if varying and not (first <= varying[0] and varying[-1] < stop):
            return []
        block = values[tuple(slice(None) if first <= axis < stop else 0 for axis in range(values.ndim))]
        found.append((first, np.array(block)))
        first = stop
    return found


def _should_fold(node: ir.Node) -> bool | None:
    """Tell whether to fold ``node``, whose inputs are constants; None for "as usual"."""
    if node.domain not in ("", "ai.onnx") or node.op_type == "Identity" or by_runtime(node):
        return False
    elements = _elements(node)
    if elements is None or elements > _FOLDED_ELEMENTS:
        return False
    return True if node.op_type == "ConstantOfShape" else None


def _elements(node: ir.Node) -> int | None:
    """Return an upper bound of the size of a node's result; None where there is none."""
    shapes = [value.shape for value in node.outputs]
    if all(shape is not None and shape.is_static() for shape in shapes):
        return sum(math.prod(shape.numpy()) for shape in shapes if shape is not None)
    values = [value.const_value.numpy() for value in node.inputs if value is not None and value.const_value is not None]
    if node.op_type == "ConstantOfShape":
        return math.prod(map(int, values[0].ravel()[:16]))
    if node.op_type == "Range" and len(values) == 3 and all(value.size == 1 for value in values):
        start, limit, step = (value.item() for value in values)
        steps = (limit - start) / step if step else math.nan
        return max(0, math.ceil(steps)) if math.isfinite(steps) else None
    if node.op_type in ("Expand", "Tile") and len(values) == 2:
        return values[0].size * math.prod(max(1, int(extent)) for extent in values[1].ravel()[:16])
    product = math.prod(max(1, value.size) for value in values)
    return product if node.op_type not in _GROWING and product <= _UNSHAPED_ELEMENTS else None
