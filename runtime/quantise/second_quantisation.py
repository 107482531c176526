"""Quantise the float part of a partly quantised model: what is quantised already keeps its levels, scales and names.

ONNX Runtime's quantiser passes over tensors that a DequantizeLinear makes: it has no parameters for what moves them,
waits for those for ever (onnxruntime 1.2x, `QDQQuantizer._quantize_sharing_param_tensors`), and takes the scale of a
bias from a range that it has measured, not from the quantisation that stands there. So each tensor that enters a float
region goes through an Identity, whose result the quantiser is told to quantise as it is; afterwards both go.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType

from tilewright.compiler.errors import BadModelError
from tilewright.runtime.quantise.float_regions import channel_pairs, constant_names, float_regions, is_quantised

__all__ = ["Levels", "SecondQuantisation", "fold_weights", "give_up_channel_scales", "name_nodes"]

_TYPES = {np.dtype(np.int8): QuantType.QInt8, np.dtype(np.uint8): QuantType.QUInt8}
_ENTERS = ":enters"


@dataclass(frozen=True, slots=True)
class Levels:
    """The quantisation of a tensor: scales and zero points, one or one for each index of ``axis``.

    ``floats`` are the numbers that they stand for, of constants.
    """

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int | None = None
    floats: np.ndarray | None = None

    def is_of(self, values: np.ndarray) -> bool:
        """Tell whether a constant of these ``values`` is that of the levels."""
        return self.floats is not None and np.array_equal(values, self.floats)


@dataclass(slots=True)
class SecondQuantisation:
    """A model whose float part is to be quantised, with names that the quantiser can add to.

    Attributes
    ----------
    proto : ModelProto
        What the quantiser gets.
    kept : list of str
        Names of the nodes that stay as they are.
    levels : dict of str to Levels
        Given quantisation of tensors that the quantiser meets.
    before : frozenset of str
        Tensors that are computed in ``proto``.
    marker : str
        Follows what had another name.
    """

    proto: onnx.ModelProto
    kept: list[str] = field(default_factory=list)
    levels: dict[str, Levels] = field(default_factory=dict)
    before: frozenset[str] = frozenset()
    marker: str = ":given"

    @classmethod
    def of(cls, prepared: onnx.ModelProto, weights: Mapping[str, Levels]) -> "SecondQuantisation":
        """Return what the quantiser gets for a model, of whose weights these were quantised; all nodes have names."""
        found = cls(prepared)
        constants = {tensor.name: tensor for tensor in prepared.graph.initializer}
        # What optimisation has changed has other levels.
        found.levels = {name: given for name, given in weights.items() if given.zero_point.dtype in _TYPES
                        and name in constants and given.is_of(numpy_helper.to_array(constants[name]))}
        if not is_quantised(prepared.graph):
            return found
        found.proto = onnx.ModelProto()
        found.proto.CopyFrom(prepared)
        graph = found.proto.graph
        floats = {index for region in float_regions(graph) for index in region.nodes}
        found._rename()
        found.kept = [node.name for index, node in enumerate(graph.node) if index not in floats]
        found._enter([graph.node[index] for index in sorted(floats)])
        found.before = frozenset(name for node in graph.node for name in node.output)
        return found

    @property
    def overrides(self) -> dict[str, list[dict[str, object]]]:
        """The given quantisation as ONNX Runtime's quantiser takes it (its option TensorQuantOverrides)."""
        return {name: _override(given) for name, given in self.levels.items()}

    def joined(self, made: onnx.ModelProto) -> onnx.ModelProto:
        """Return what the quantiser ``made`` without pairs that are there twice, and with the names as they were."""
        if not self.kept:
            return made
        _Join(made.graph, self.before, self.levels).apply()
        taken = _names(made.graph)
        back = {name: name.replace(self.marker, "") for name in taken if self.marker in name}
        wanted = Counter(back.values())
        _rename(made.graph, {name: old for name, old in back.items() if old not in taken and wanted[old] == 1})
        return made

    def _rename(self) -> None:
        """Give what is called like another with something added a name that the quantiser does not make of that one."""
        graph = self.proto.graph
        public = {value.name for value in (*graph.input, *graph.output)}
        names = _names(graph)
        while any(self.marker in name for name in names):
            self.marker += ":"
        changed, before = set[str](), list[str]()
        for name in sorted(names):
            while before and not name.startswith(before[-1]):
                before.pop()
            if before:
                changed |= set(before) - public if name in public else {name}
            before.append(name)
        _rename(graph, {name: f"{name}{self.marker}" for name in changed})
        self.levels = {f"{name}{self.marker}" if name in changed else name: given
                       for name, given in self.levels.items()}

    def _enter(self, floats: Sequence[NodeProto]) -> None:
        """Put an Identity before each tensor that these nodes read of a DequantizeLinear, and note its quantisation."""
        graph = self.proto.graph
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        makers = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
        fixed, behind = constant_names(graph), dict[str, NodeProto]()
        for node in floats:
            for position, name in enumerate(node.input):
                if name not in makers or name in fixed:
                    continue
                entering = f"{name}{_ENTERS}"
                if name not in behind:
                    behind[name] = helper.make_node("Identity", [name], [entering], entering)
                    if (given := _levels_of(makers[name], constants)) is not None:
                        self.levels[entering] = given
                node.input[position] = entering
        made = {name for node in floats for name in node.output}
        for node in graph.node:
            if node.op_type == "QuantizeLinear" and node.input[0] in made \
                    and (given := _levels_of(node, constants)) is not None:
                self.levels[node.input[0]] = given
        self.kept += [node.name for node in behind.values()]
        _set_nodes(graph, [each for node in graph.node
                           for each in (node, *(behind[name] for name in node.output if name in behind))])


def fold_weights(graph: onnx.GraphProto) -> dict[str, Levels]:
    """Make each DequantizeLinear of constants that a float region reads a float constant, in place.

    Returns
    -------
    dict of str to Levels
        What each of these was made of.

    Raises
    ------
    BadModelError
        If scales and zero points do not fit the levels.
    """
    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {node.output[0]: node for node in graph.node
              if node.op_type == "DequantizeLinear" and set(node.input) - {""} <= constants.keys()}
    whole = not is_quantised(graph)
    read = graph.node if whole else [graph.node[index] for region in float_regions(graph) for index in region.nodes]
    folded: dict[str, Levels] = {}
    for node in read:
        for position, name in enumerate(node.input):
            if name in makers:
                new = f"{name}:float"
                if new not in folded:
                    folded[new] = _constant_levels(makers[name], constants)
                    graph.initializer.append(numpy_helper.from_array(folded[new].floats, new))
                node.input[position] = new
    _drop_unread(graph, [makers[name.removesuffix(":float")] for name in folded])
    return folded


def give_up_channel_scales(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Make what is quantised with a scale for each channel, and is no constant, float again, in place; say so.

    It gets one scale with the float part: the datapath has one for a tensor, and so have ONNX Runtime's kernels.
    """
    pairs = channel_pairs(graph)
    if not pairs:
        return ()
    public = {value.name for value in graph.output}
    for node in graph.node:
        node.input[:] = [pairs.get(name, name) for name in node.input]
    outer = {name: source for name, source in pairs.items() if name in public}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.output[0] in outer:
            node.CopyFrom(helper.make_node("Identity", [outer[node.output[0]]], node.output, node.name))
    dead = [node for node in graph.node if node.op_type == "DequantizeLinear" and node.output[0] in pairs]
    levels = {node.input[0] for node in dead}
    _drop_unread(graph, dead)
    _drop_unread(graph, [node for node in graph.node if node.output[0] in levels])
    count = f"{len(pairs)} tensors" if len(pairs) > 1 else "1 tensor"
    remark = (f"scales per channel of {count} ({', '.join(sorted(pairs.values())[:3])}) became one scale each, from "
              "the samples: the datapath has one for a tensor")
    return (remark,)


def name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node without a name, or with that of another, a name of its own, in place."""
    seen: set[str] = set()
    for index, node in enumerate(graph.node):
        if not node.name or node.name in seen:
            node.name = f"{node.name or node.op_type}_{index}"
        seen.add(node.name)


def _constant_levels(node: NodeProto, constants: Mapping[str, TensorProto]) -> Levels:
    """Return the levels of a DequantizeLinear of constants: (q - zero point) · scale in float32, as ONNX defines it."""
    levels, scale, *zero = (numpy_helper.to_array(constants[name]) for name in node.input if name)
    axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
    difference = levels.astype(np.int64)
    shape = [1] * levels.ndim
    zero_point = zero[0] if zero else np.zeros((), levels.dtype)
    try:
        if scale.size > 1:
            shape[axis] = -1
        difference = difference - zero_point.astype(np.int64).reshape(shape if zero_point.size > 1 else ())
        scale = scale.astype(np.float32).reshape(shape if scale.size > 1 else ())
        floats = np.asarray(difference.astype(np.float32) * scale, np.float32).reshape(levels.shape)
    except (ValueError, IndexError) as error:
        raise BadModelError(f"Node {node.name!r} ({node.op_type}) must have one scale and zero point, or one for each "
                            f"of axis {axis}, not {scale.size} for the shape {list(levels.shape)!r}") from error
    return Levels(scale.ravel(), zero_point.ravel().astype(levels.dtype),
                  axis % levels.ndim if scale.size > 1 else None, floats)


def _levels_of(node: NodeProto, constants: Mapping[str, np.ndarray]) -> Levels | None:
    """Return the quantisation of a QuantizeLinear or DequantizeLinear, if it is one to 8 bits with one scale."""
    scale = constants.get(node.input[1], np.zeros(0))
    zero = constants.get(node.input[2], np.zeros(0)) if len(node.input) > 2 else np.zeros(0)
    if not scale.size or not zero.size or zero.dtype not in _TYPES \
            or (scale != scale.flat[0]).any() or (zero != zero.flat[0]).any():
        return None
    return Levels(scale.ravel()[:1], zero.ravel()[:1])


def _override(given: Levels) -> list[dict[str, object]]:
    count = max(given.scale.size, given.zero_point.size)
    scales, zeros = (np.broadcast_to(each, count) for each in (given.scale, given.zero_point))
    axis = {} if given.axis is None else {"axis": given.axis}
    return [{"quant_type": _TYPES[given.zero_point.dtype], "scale": np.asarray(scale), "zero_point": np.asarray(zero),
             **axis} for scale, zero in zip(scales, zeros, strict=True)]


class _Join:
    """Drops pairs that the quantiser has put beside quantisation; ``before`` are the tensors that there were.

    DQ → Identity → Q → DQ is the first DQ, as their parameters are the same. Of X → Q → DQ → Q the first Q goes, if
    the pair is for that Q alone, or else the last, if both are the same.
    """

    def __init__(self, graph: onnx.GraphProto, before: Collection[str], levels: Mapping[str, Levels]) -> None:
        self._graph, self._before, self._levels = graph, before, levels
        self._makers = {name: node for node in graph.node for name in node.output}
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer
                           if len(tensor.dims) < 2}

    def apply(self) -> None:
        """Drop them, in place."""
        graph, readers = self._graph, dict[str, list[NodeProto]]()
        for node in graph.node:
            for name in node.input:
                readers.setdefault(name, []).append(node)
        outputs = {value.name for value in graph.output}
        renamed: dict[str, str] = {}
        for name, near in readers.items():
            source = self._quantised(name)
            if source is None:
                continue
            if source.endswith(_ENTERS) and source in self._levels:
                renamed[name] = source
            elif name not in outputs and all(node.op_type == "QuantizeLinear" for node in near):
                renamed[name] = source
            else:
                levels = self._makers[name].input[0]
                renamed |= {node.output[0]: levels for node in near
                            if node.op_type == "QuantizeLinear" and self._same(node, self._makers[levels])}
        for node in graph.node:
            node.input[:] = [renamed.get(name, name) for name in node.input]
        # Those that enter are the last to go: pairs were recognised by them.
        for node in graph.node:
            node.input[:] = [name.removesuffix(_ENTERS) if name.endswith(_ENTERS)
                             and name not in outputs else name for name in node.input]
        self._drop_unread(outputs)

    def _quantised(self, name: str) -> str | None:
        """Return what is quantised and dequantised to ``name`` by a pair of the quantiser's; None if that is not so."""
        last = self._makers.get(name)
        first = self._makers.get(last.input[0]) if last is not None and last.op_type == "DequantizeLinear" else None
        if first is None or first.op_type != "QuantizeLinear" or first.output[0] in self._before:
            return None
        return first.input[0]

    def _same(self, one: NodeProto, other: NodeProto) -> bool:
        first, second = (_levels_of(node, self._constants) for node in (one, other))
        return first is not None and second is not None and first.zero_point.dtype == second.zero_point.dtype \
            and bool(first.scale == second.scale) and bool(first.zero_point == second.zero_point)

    def _drop_unread(self, outputs: Collection[str]) -> None:
        nodes, unread = list(self._graph.node), True
        while unread:
            read = {name for node in nodes for name in node.input} | set(outputs)
            kept = [node for node in nodes if set(node.output) & read]
            unread, nodes = len(kept) < len(nodes), kept
        _set_nodes(self._graph, nodes)
        constants = [tensor for tensor in self._graph.initializer if tensor.name in read]
        del self._graph.initializer[:]
        self._graph.initializer.extend(constants)


def _names(graph: onnx.GraphProto) -> set[str]:
    """Return the names of a graph's tensors and nodes."""
    names = {name for node in graph.node for name in (node.name, *node.input, *node.output)}
    return (names | {each.name for each in (*graph.initializer, *graph.input, *graph.output)}) - {""}


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        node.name = names.get(node.name, node.name)
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for each in (*graph.initializer, *graph.value_info):
        each.name = names.get(each.name, each.name)


def _set_nodes(graph: onnx.GraphProto, nodes: Sequence[NodeProto]) -> None:
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _drop_unread(graph: onnx.GraphProto, nodes: Sequence[NodeProto]) -> None:
    """Remove those of the ``nodes`` whose result nothing reads."""
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    for node in nodes:
        if not read & set(node.output):
            graph.node.remove(node)
