"""Bring a model to an opset of whose operators ONNX Runtime has kernels: the reference and the quantiser run it there.

onnx knows operators that no released runtime computes, and its helper writes the newest by default. ONNX Runtime says
itself what it computes. onnx's own converter takes a model down where the meaning stays.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import onnx
import onnx.version_converter
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as onnx_runtime

from tilewright.compiler.errors import UnsupportedModelError
from tilewright.compiler.onnx.reading_notes import add_note

__all__ = ["converted", "raised", "with_gelu", "with_kernels", "with_round"]

_DOMAINS = ("", "ai.onnx")
_QUANTISATION = {"DequantizeLinear", "QuantizeLinear"}
"""Operators that the quantiser adds to a float model."""

_PER_AXIS, _NARROW_AND_WIDE = 13, 21
_OF_21 = {onnx.TensorProto.INT16, onnx.TensorProto.UINT16, onnx.TensorProto.INT4, onnx.TensorProto.UINT4}

_ROUND = 11
"""The first opset that has a Round, by which ONNX Runtime quantises float biases."""

_PIXEL_CENTRES = 11
"""The first opset in which a Resize scales pixels by their centres, if it states nothing else."""

_GELU, _GELU_IR = 20, 9
"""The first opset that has a Gelu, and the format that it came with."""

_NOT_CONVERTED = (RuntimeError, ValueError, onnx.version_converter.ConvertError)

_OPEN = 2**31 - 1
"""The end of a kernel's versions while no newer one is known: it then computes the first of them, and no other."""


def with_kernels(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model in the newest opset up to its own for which there are kernels, with a note if that is another.

    It stays as it is where an operator has another meaning there.
    """
    stated = next((each for each in proto.opset_import if each.domain in _DOMAINS), None)
    if stated is None:
        return proto
    used = {node.op_type for node in _nodes(proto.graph) if node.domain in _DOMAINS} | _QUANTISATION
    missing = sorted(op for op in used if not _computes(op, stated.version))
    target = next((version for version in range(stated.version, 0, -1)
                   if all(_computes(op, version) for op in used)), None)
    if target in (None, stated.version):
        return proto
    assert target is not None
    note = (f"read as of opset {target}, not {stated.version}, of which ONNX Runtime {onnxruntime.__version__} has no "
            f"{', '.join(missing)}")
    try:
        made = converted(proto, target)
    except (RuntimeError, ValueError):
        return proto    # An operator has another meaning there: it is compiled as it is, and has no reference.
    if list(made.graph.node) == list(proto.graph.node):
        stated.version = target     # nothing has changed but the number
        made = proto
    add_note(made, note)
    return made


def with_gelu(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that has a FastGelu of com.microsoft in an opset that has it as a Gelu: one function, not eight.

    It stays as it is where another of its operators cannot be brought there.
    """
    stated = next((each for each in proto.opset_import if each.domain in _DOMAINS), None)
    if stated is None or stated.version >= _GELU or all(node.op_type != "FastGelu" for node in proto.graph.node):
        return proto
    try:
        made = converted(proto, _GELU)
    except _NOT_CONVERTED:
        return proto
    made.ir_version = max(made.ir_version, _GELU_IR)
    return made


def with_round(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a quantised model of opset 10 in the next, with a note, where that can be: float biases need its Round."""
    stated = next((each for each in proto.opset_import if each.domain in _DOMAINS), None)
    if stated is None or stated.version != _ROUND - 1 or all(node.op_type not in _QUANTISATION
                                                             for node in proto.graph.node):
        return proto
    try:
        made = converted(proto, _ROUND)
    except _NOT_CONVERTED:
        return proto
    add_note(made, f"read as of opset {_ROUND}, not {stated.version}, of which ONNX Runtime "
                   f"{onnxruntime.__version__} quantises no float bias")
    return made


def converted(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return a model in another opset, with its metadata.

    Up to opset 10 pixels are scaled from the corner. onnx's converter leaves that to a default that has changed
    (`findings/onnx-converter-meaning.sh`); here it is stated.

    Raises
    ------
    RuntimeError, ValueError, onnx.version_converter.ConvertError
        If an operator has no such meaning in the other opset.
    """
    stated = next((each.version for each in proto.opset_import if each.domain in _DOMAINS), opset)
    made = onnx.version_converter.convert_version(proto, opset)
    if stated < _PIXEL_CENTRES <= opset:
        _scale_from_corners(made.graph)
    known = {each.key for each in made.metadata_props}
    made.metadata_props.extend(each for each in proto.metadata_props if each.key not in known)
    return made


def _scale_from_corners(graph: onnx.GraphProto) -> None:
    """State that each Resize scales pixels from the corner, in place."""
    modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for node in _nodes(graph):
        if node.op_type == "Resize":
            given = {each.name for each in node.attribute}
            node.attribute.extend(onnx.helper.make_attribute(name, mode) for name, mode in modes.items()
                                  if name not in given)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph and of those within them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


@cache
def _kernels() -> Mapping[str, frozenset[tuple[int, int]]]:
    """Return the versions of each of ONNX's operators, first and last, that ONNX Runtime has kernels for."""
    found: dict[str, set[tuple[int, int]]] = {}
    for kernel in onnx_runtime.get_all_opkernel_def():
        if kernel.domain in _DOMAINS:
            found.setdefault(kernel.op_name, set()).add(tuple(kernel.version_range))
    return {op: frozenset(ranges) for op, ranges in found.items()}


def _computes(op: str, opset: int) -> bool:
    """Tell whether there is a kernel for an operator as it is in an opset, or it is older than all that there are.

    One without kernels is defined by other operators, or refused elsewhere.
    """
    if op not in _kernels():
        return True
    try:
        since = onnx.defs.get_schema(op, opset).since_version
    except onnx.defs.SchemaError:
        return op in _QUANTISATION      # as of opset 10: older float models are taken up to it
    ranges = _kernels()[op]
    return since <= max(first for first, _ in ranges) or any(first < since <= last < _OPEN for first, last in ranges)


def raised(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model in an opset that has what its Q and DQ need: channels from 13 on, 4 and 16 bits from 21 on.

    Those of com.microsoft, which know both at every opset, count as ONNX's, which they become.

    Raises
    ------
    UnsupportedModelError
        If another of its operators cannot be brought there.
    """
    opset = next((each.version for each in proto.opset_import if each.domain in ("", "ai.onnx")), _PER_AXIS)
    least = _least(proto.graph)
    if opset >= least:
        return proto
    try:
        return converted(proto, least)
    except _NOT_CONVERTED as error:
        raise UnsupportedModelError(f"Model of opset {opset} has quantisation that ONNX knows from opset {least} on, "
                                    "and cannot be brought there", f"export it again with opset {least}") from error


def _least(graph: onnx.GraphProto) -> int:
    """Return the first opset that has the Q and DQ of a graph."""
    kinds = {tensor.name: (tensor.data_type, len(tensor.dims)) for tensor in graph.initializer}
    least = 0
    for node in graph.node:
        if node.op_type not in _QUANTISATION:
            continue
        least = max(least, 10)
        for name in node.input[1:]:
            kind, rank = kinds.get(name, (0, 0))
            least = max(least, _PER_AXIS if rank else 0, _NARROW_AND_WIDE if kind in _OF_21 else 0)
        if any(each.name == "block_size" and each.i for each in node.attribute):
            least = _NARROW_AND_WIDE
    return least
