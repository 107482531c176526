"""The last step: a graph of fused operators becomes a Network with all constants computed."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import (
    Dequantize,
    ExactWindow,
    OneLayer,
    QAverage,
    QConv,
    QConvTranspose,
    QInterpolate,
    QProduct,
    QScale,
    Quantize,
    QUnit,
    TakesTable,
)
from tilewright.compiler.graph.move_operators import (
    IntegerMove,
    QAlias,
    QAssemble,
    QConcat,
    QInterleave,
    QPad,
    QPiece,
    QSlice,
    QUpsample,
)
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.scales import tensor_info
from tilewright.compiler.network.integer_scale import IntegerScale, LongScale
from tilewright.compiler.network.interpolation import Interpolation
from tilewright.compiler.network.layers import (
    AnyLayer,
    CoreLayer,
    Layer,
    Network,
    Pair,
    Requantisation,
    Shape,
    TensorInfo,
    UnreadInput,
)
from tilewright.compiler.network.movements import (
    AssemblyMove,
    ConcatMove,
    PieceMove,
    SliceMove,
    UpsampleMove,
    ViewMove,
)
from tilewright.compiler.network.places import PlacementStep, TensorPart, copy_layer, place_tensors
from tilewright.compiler.network.strided_views import whole_place
from tilewright.compiler.network.transposed import TransposedConvolution
from tilewright.compiler.passes.lower.average_numbers import average_numbers
from tilewright.compiler.passes.lower.build_core import (
    check_core,
    core_constants,
    core_info,
    core_layer,
    core_tensors,
    flat_info,
    is_core,
    stored_constants,
)
from tilewright.compiler.passes.lower.build_matrix_product import matrix_product_layers
from tilewright.compiler.passes.lower.build_product import product_layer
from tilewright.isa.machine import SUM_BYTES
from tilewright.isa.numerics import pack_scale, wrap

__all__ = ["build_network"]


class _About(TypedDict):
    """Arguments that all movements of tensors take."""

    name: str
    onnx_nodes: tuple[str, ...]
    output: str


def build_network(graph: Graph) -> Network:
    """Return the network of a graph whose nodes are QConv, QAverage and QPass, Quantize, Dequantize, and ONNX's.

    Raises
    ------
    CompileError
        If a tensor of the datapath has neither two nor four dimensions, its quantisation is unknown, a scale is beyond
        what the datapath multiplies by, or the host core does not compute one of ONNX's operators either.
    """
    nodes = [node for node in graph.nodes
             if isinstance(node.operator, TakesTable | IntegerMove | QAlias) or is_core(node)]
    names = _unique_names(nodes)
    build = _Build(graph)
    steps = [step for node, name in zip(nodes, names, strict=True) for step in build.steps(node, name)]
    inputs, outputs = build.inputs(), build.outputs()
    used = {name for node in nodes for name in (*build.data_inputs(node), node.output)}
    tensors = {name: build.info(name) for name in sorted(used)}
    tensors |= build.parts | {info.name: info for info in (*outputs, *inputs)}
    layers: tuple[AnyLayer, ...] = tuple(step for step in steps if isinstance(step, Layer | CoreLayer))
    if len(layers) < len(steps) or build.parts:
        found = place_tensors(steps, tensors, [*(info.name for info in inputs), *build.stored],
                              [info.name for info in outputs])
        layers, tensors = found.layers, found.tensors
    inputs, outputs = (tuple(info if info.place == tensors[info.name].place else
                             replace(info, place=tensors[info.name].place) for info in border)
                       for border in (inputs, outputs))
    constants = core_constants(graph) | {name: array for name, array in build.stored.items() if name in tensors}
    _check_computed(layers, graph)
    check_core([layer for layer in layers if isinstance(layer, CoreLayer)], tensors, constants)
    return Network(name=graph.name, layers=layers, inputs=inputs, outputs=outputs, tensors=tensors,
                   constants=constants, unread=_unread(graph, inputs), defaults=graph.border.defaults,
                   state=graph.border.state)


def _unread(graph: Graph, inputs: Sequence[TensorInfo]) -> tuple[UnreadInput, ...]:
    """Return the model's inputs that none of the tensors ``inputs`` stands for."""
    read, found = {info.onnx_name for info in inputs}, []
    for position, name in enumerate(graph.inputs):
        if name not in read:
            tensor = graph.tensors[name]
            found.append(UnreadInput(name=name, dtype=graph.border.type_of(name, tensor.dtype),
                                     shape=tensor.shape or (), position=position))
    return tuple(found)


def _check_computed(layers: Sequence[AnyLayer], graph: Graph) -> None:
    """Refuse a layer of the datapath that reads a constant that is not stored: it need not be computed."""
    stored = stored_constants(graph)
    for layer in (each for each in layers if isinstance(each, Layer)):
        constant = [name for name in layer.reads if name in graph.constants and name not in stored]
        if constant:
            raise UnsupportedNodeError(layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, layer.kind,
                                       f"it computes with the constant {constant[0]!r}, which nothing does at run time",
                                       "fold constants into the model, for instance with onnxsim")


def _unique_names(nodes: list[Node]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for node in nodes:
        seen[node.name] += 1
        names.append(node.name if seen[node.name] == 1 else f"{node.name}#{seen[node.name]}")
    return names


class _Build:
    """Layers and tensors of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.core, self.stored = core_tensors(graph), stored_constants(graph)
        self.parts: dict[str, TensorInfo] = {}
        self.flat = frozenset(name for node in graph.nodes if isinstance(node.operator, QAlias)
                              for name in node.operator.flat)
        self.aliased = frozenset(name for node in graph.nodes if isinstance(node.operator, QAlias | QPiece | QAssemble)
                                 for name in (*node.inputs, node.output))

    def info(self, name: str) -> TensorInfo:
        """Return what the back end knows of a tensor."""
        tensor = self.graph.tensors[name]
        shape = tensor.shape or ()
        if name in self.flat:
            return flat_info(tensor)
        if name in self.aliased and (len(shape) not in (2, 4) or shape[0] != 1):
            return core_info(tensor)
        return core_info(tensor) if name in self.core or tensor.dtype == "int32" else tensor_info(tensor)

    def border(self, name: str, border: Tensor, public: str) -> TensorInfo:
        """Return a tensor that stands for an input or output of the model, which users know as ``public``."""
        info, dtype = self.info(name), border.dtype
        if border.name == name or border.dtype == "int8":
            dtype = "uint8" if info.unsigned else info.dtype
        dtype = self.graph.border.type_of(public, dtype)
        return replace(info, onnx_name=public, onnx_dtype=dtype, onnx_shape=border.shape)

    def inputs(self) -> tuple[TensorInfo, ...]:
        """Return the tensors that stand for the model's inputs."""
        found = []
        for name in self.graph.inputs:
            border = self.graph.tensors[name]
            readers = self.graph.readers(name)
            found += [replace(self.border(node.output, border, name), preparation=node.operator.preparation)
                      for node in readers if isinstance(node.operator, Quantize)]
            if not all(isinstance(node.operator, Quantize) for node in readers):
                found.append(self.border(name, border, name))
        return tuple(found)

    def outputs(self) -> tuple[TensorInfo, ...]:
        """Return the tensors that stand for the model's outputs, in its order; several may be one."""
        found = []
        for name, public in zip(self.graph.outputs, self.graph.border.outputs or self.graph.outputs, strict=True):
            node = self.graph.producer(name)
            if node is None:
                raise UnsupportedModelError(
                    f"Output {public!r} must be computed by the model, not be an input or constant")
            if isinstance(node.operator, Dequantize):
                info = self.border(node.inputs[0], self.graph.tensors[name], public)
                found.append(replace(info, channels=node.operator.channels))
            else:
                found.append(self.border(name, self.graph.tensors[name], public))
        return tuple(found)

    def data_inputs(self, node: Node) -> tuple[str, ...]:
        """Return the tensors that a node reads, constants left out."""
        operator = node.operator
        if isinstance(operator, QScale) and operator.residual is not None:
            return *node.inputs[:2], operator.residual.tensor
        if isinstance(operator, QScale | QProduct):
            return node.inputs[:2]
        if isinstance(operator, OneLayer) and operator.residual is not None:
            return node.inputs[0], operator.residual.tensor
        if isinstance(operator, TakesTable):
            return node.inputs[:1]
        return tuple(name for name in node.inputs if name and (
            name not in self.graph.constants or (name in self.stored and not is_core(node))))

    def steps(self, node: Node, name: str) -> list[PlacementStep]:
        """Return what the back end has for a node: layers, or the movement of a tensor."""
        about: _About = {"name": name, "onnx_nodes": node.onnx_nodes, "output": node.output}
        match node.operator:
            case QConvTranspose() as operator:
                return self.transposed(node, operator, name)
            case QInterpolate() as operator:
                return self.interpolated(node, operator, name)
            case QInterleave(steps):
                return self.interleaved(node, steps, name)
            case QScale() as operator:
                names = *node.inputs[:2], operator.own_output or node.output, node.output
                types = tuple(tensor_info(self.graph.tensors[each]) for each in names)
                return [product_layer(node, operator, name, types)]
            case QProduct() as operator:
                names = *node.inputs[:2], operator.own_output or node.output, node.output
                layers, parts = matrix_product_layers(node, operator, name, tuple(
                    tensor_info(self.graph.tensors[each]) for each in names))
                self.parts |= parts
                return list(layers)
            case QConv(whole=True) as operator:
                return [self.whole(node, operator, name)]
            case OneLayer() as operator:
                return [self.layer(node, operator, name)]
            case QConcat(axis):
                return [ConcatMove(**about, inputs=node.inputs, axis=axis)]
            case QSlice(starts, steps):
                return [SliceMove(**about, input=node.inputs[0], starts=starts, steps=steps)]
            case QAlias():
                return [ViewMove(**about, input=node.inputs[0])]
            case QPiece(piece):
                return [PieceMove(**about, input=node.inputs[0], steps=piece)]
            case QAssemble(places):
                return [AssemblyMove(**about, inputs=node.inputs, steps=places)]
            case QUpsample(factors):
                return [UpsampleMove(**about, input=node.inputs[0], factors=factors)]
            case QPad(pads, value):
                return [copy_layer(name, node.onnx_nodes, self.info(node.inputs[0]), node.output, pads=pads,
                                   pad_value=value)]
            case _:
                return [core_layer(self.graph, node, name)]

    def interleaved(self, node: Node, phases: Pair, name: str) -> list[PlacementStep]:
        """Return the layers that copy tensors to the phases of another one."""
        output, (rows, columns) = self.info(node.output), phases
        steps: list[PlacementStep] = []
        for index, source in enumerate(node.inputs):
            info, start = self.info(source), divmod(index, columns)
            part = replace(info, name=f"{output.name}[{start[0]}::{rows}, {start[1]}::{columns}]", dims=None,
                           place=TensorPart(output.name, (0, *start), (rows, columns)).place(output.shape))
            self.parts[part.name] = part
            steps.append(copy_layer(f"{name}[{start[0]}, {start[1]}]", node.onnx_nodes, info, part.name))
        return steps

    def own_output(self, node: Node, operator: TakesTable) -> TensorInfo:
        """Return what the operator itself writes, before what has been fused behind it; pooling does not change it."""
        return tensor_info(self.graph.tensors[operator.own_output or node.output])

    def transposed(self, node: Node, operator: QConvTranspose, name: str) -> list[PlacementStep]:
        """Return the layers of a transposed convolution; what they write are parts of its result."""
        x, own = self.info(node.inputs[0]), self.own_output(node, operator)
        weights, w_scale = self.graph.constants[node.inputs[1]], self.graph.constants[node.inputs[2]]
        channels, window = weights.shape[1] * operator.groups, operator.window
        bias = self.graph.constants[node.inputs[3]] if node.inputs[3] else np.zeros(channels, np.int32)
        scale = x.scale * w_scale / own.scale
        _check_scales(node, scale)
        convolution = TransposedConvolution(
            name=name, onnx_nodes=node.onnx_nodes, source=x, output=self.info(node.output), weights=weights, bias=bias,
            strides=window.strides, pads=window.pads, dilations=window.dilations, groups=operator.groups,
            requantisation=Requantisation(scale=np.ascontiguousarray(np.broadcast_to(scale, channels), np.float32),
                                  zero_point=own.zero_point, low=operator.low, high=operator.high,
                                  integers=operator.integers),
            table=operator.table, exact=operator.exact)
        layers, parts = convolution.layers()
        for layer in layers:
            _check_integers(node, operator.integers, layer.bias)
        self.parts |= parts
        return list(layers)

    def interpolated(self, node: Node, operator: QInterpolate, name: str) -> list[PlacementStep]:
        """Return the layers of a resize, and the slices that they read; what they write are parts of its result."""
        x, own = self.info(node.inputs[0]), self.own_output(node, operator)
        scale = np.full(1, x.scale / own.scale, np.float32)
        _check_scales(node, scale)
        steps, tensors = Interpolation(
            name=name, onnx_nodes=node.onnx_nodes, source=x, output=self.info(node.output), rows=operator.rows,
            columns=operator.columns, copies=operator.copies, down=operator.direct and x.unsigned,
            requantisation=Requantisation(scale=scale, zero_point=own.zero_point, low=operator.low, high=operator.high),
            table=operator.table, exact=operator.exact).steps()
        self.parts |= tensors
        return steps

    def whole(self, node: Node, operator: QConv, name: str) -> Layer:
        """Return the layer that writes whole sums: their bytes, as channels of a part that is all of their tensor."""
        sums = self.info(node.output)
        levels = Tensor(f"{sums.name} values", (1, 1), "int8", np.float32(1), 0)
        graph = self.graph.with_tensors(levels)
        layer = _Build(graph).layer(node.with_(output=levels.name), operator, name)
        channels, height, width = layer.conv_shape
        shape = SUM_BYTES * channels, height, width
        part = TensorInfo(name=f"{sums.name} bytes", shape=shape, scale=np.float32(1), zero_point=0,
                          place=whole_place(sums.name, shape))
        self.parts[part.name] = part
        return replace(layer, output=part.name, out_shape=shape, whole=True, requantisation=Requantisation(
            scale=np.ones(channels, np.float32), zero_point=0))

    def layer(self, node: Node, operator: OneLayer, name: str) -> Layer:
        """Return a layer of the datapath."""
        graph = self.graph
        x, out = tensor_info(graph.tensors[node.inputs[0]]), tensor_info(graph.tensors[node.output])
        own = self.own_output(node, operator)
        channels, window, groups = x.shape[0], ExactWindow(), x.shape[0]
        weights, zero_point, exact, pad_value = None, own.zero_point, operator.exact, x.zero_point
        bias, sums, scale = np.zeros(channels, np.int32), np.zeros(channels, np.int64), np.ones(1, np.float32)
        match operator:
            case QConv():
                window, groups = operator.exact_window, operator.groups
                weights, w_scale = (graph.constants[each] for each in node.inputs[1:3])
                bias = graph.constants[node.inputs[3]] if node.inputs[3] else np.zeros(weights.shape[0], np.int32)
                scale = np.float32(operator.alpha) * x.scale * w_scale / own.scale
                sums = weights.sum(axis=(1, 2, 3), dtype=np.int64)
            case QAverage():
                window = operator.exact_window
                covers = window.kernel == x.shape[1:] and not any(window.pads) and not operator.windowed
                numbers = average_numbers(math.prod(window.kernel), x, own, covers)
                scale, zero_point, exact = np.array([numbers.scale]), numbers.zero_point, exact and numbers.exact
                bias, sums = np.full(channels, numbers.offset), np.full(channels, math.prod(window.kernel))
            case QUnit(use=unit):
                count = unit.unit.result_bytes
                weights = np.eye(count, channels, dtype=np.int8).reshape(count, channels, 1, 1)
                zero_point, groups, pad_value = 0, 1, 0
                bias, sums = np.zeros(count, np.int32), np.zeros(count, np.int64)
            case _:
                zero_point, pad_value = 0, 0
        _check_scales(node, scale)
        integers, bias = operator.integers if isinstance(operator, QConv) else None, _fold_zero_point(
            bias, x.zero_point, sums)
        _check_integers(node, integers, bias)
        return Layer(
            name=name, kind=operator.KIND, onnx_nodes=node.onnx_nodes, input=x.name, output=node.output,
            in_shape=x.shape, conv_shape=_conv_shape(bias.size, x.shape, window), out_shape=out.shape,
            weights=weights, bias=bias, kernel=window.kernel, strides=window.strides, dilations=window.dilations,
            pads=window.pads, groups=groups, pad_value=pad_value,
            requantisation=Requantisation(scale=np.ascontiguousarray(np.broadcast_to(scale, bias.size), np.float32),
                                  zero_point=zero_point, low=operator.low, high=operator.high, integers=integers),
            residual=operator.residual, pool=operator.pool, table=operator.table, table_first=operator.table_first,
            stage=operator.stage, unit=operator.use if isinstance(operator, QUnit) else None, exact=exact)


def _conv_shape(channels: int, in_shape: Shape, window: ExactWindow) -> Shape:
    top, left, bottom, right = window.pads
    padded = (in_shape[1] + top + bottom, in_shape[2] + left + right)
    height, width = ((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(
        padded, window.kernel, window.strides, window.dilations, strict=True))
    return channels, height, width


def _fold_zero_point(bias: np.ndarray, zero_point: int, weight_sums: np.ndarray) -> np.ndarray:
    """Return the bias for raw values of x: Σ (x - z) w + b = Σ x w + (b - z Σ w), in int32 that wraps."""
    folded = bias.astype(np.int64) - zero_point * weight_sums.astype(np.int64)
    return np.array([wrap(int(value), 32) for value in folded], np.int32)


def _check_scales(node: Node, scales: np.ndarray) -> None:
    for scale in scales:
        try:
            pack_scale(float(scale))
        except ValueError as error:
            raise BadModelError(f"Scales of node {node.name!r} are too far apart: {error}") from error


def _check_integers(node: Node, integers: IntegerScale | LongScale | None, bias: np.ndarray) -> None:
    try:
        if integers is not None:
            integers.words(bias)
    except ValueError as error:
        raise UnsupportedNodeError(node.name, node.op, f"its addends are too large: {error}",
                                   "use smaller addends") from error
