"""Float operators between integers (QDQ form) become integer operators: ``Q(Conv(DQ(x), DQ(w)))`` becomes ``QConv``.

What is recognised is what ONNX Runtime runs in integers, or in floats with the same result but for a rounding (then
the operator is marked ``exact=False``). The rest stays as it is, with the reason, and is the host core's.
Source: ``qdq_selectors.cc`` and ``weight_bias_quantization.cc`` of ONNX Runtime.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph import Graph, Node, Tensor
from tilewright.compiler.passes import quantisation
from tilewright.compiler.passes.base import Pass, PassError
from tilewright.compiler.passes.fold_affine import ARITHMETIC, affine_of
from tilewright.compiler.passes.infer_shapes import inferred
from tilewright.compiler.passes.integer_moves import MOVES, move_node
from tilewright.compiler.passes.integer_ops import (
    INTEGER,
    UNCHANGED_VIEWS,
    bias_vector,
    moving_node,
    reshape_behind,
    weight_layout,
    weighted_node,
    window_attrs,
    with_bounds,
)
from tilewright.compiler.passes.leave_to_core import dequantised
from tilewright.compiler.passes.recognise_tables import table_node
from tilewright.compiler.passes.transposed_windows import transposed_attrs, transposed_weights
from tilewright.compiler.unary_tables import TableError

_WEIGHTED = ("Conv", "Gemm", "MatMul")
_AVERAGES = ("AveragePool", "GlobalAveragePool", "ReduceMean")
_MOVING = ("MaxPool", "GlobalMaxPool", "Relu", "Clip", *UNCHANGED_VIEWS)
SHUFFLES = ("Transpose", "DepthToSpace", "SpaceToDepth")
_FLOAT = (*_WEIGHTED, "ConvTranspose", *_AVERAGES, *_MOVING, *MOVES, *SHUFFLES, *ARITHMETIC, "BatchNormalization")


class RecogniseQdq(Pass):
    """Replace ``DequantizeLinear → operator → QuantizeLinear`` by one integer operator.

    Of what is left of the two, that at the model's border becomes Quantize and Dequantize.
    """

    def apply(self, graph: Graph) -> Graph:
        done: list[Node] = []
        absorbed: set[str] = set()
        for node in graph.nodes:
            if node.output in absorbed:
                continue
            try:
                graph, new, outputs = self._recognise(graph, node)
                absorbed |= outputs
            except UnsupportedNodeError as error:
                new = (node.with_(reason=error.reason),)
            done += new
        return _with_borders(graph.with_(nodes=tuple(done)))

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op not in INTEGER and not node.reason]:
            raise PassError(f"Only integer operators may be left without a reason, not {', '.join(left)}")

    def _recognise(self, graph: Graph, node: Node) -> tuple[Graph, tuple[Node, ...], set[str]]:
        """Return the graph with new types, what stands for ``node``, and the outputs of what that includes."""
        if node.op in INTEGER or node.reason:
            return graph, (node,), set()
        if node.op == "QuantizeLinear":
            graph, new = self._quantize(graph, node)
            return graph, (new,), set()
        if node.op == "DequantizeLinear":
            if node.inputs[0] not in graph.constants:
                graph = quantisation.with_types(graph, _type_behind(graph, node))
            return graph, (node.with_(reason="its result is needed in float"),), set()
        if node.op in _FLOAT:
            group = _Group(graph, node)
            graph, nodes = group.recognise()
            return graph, nodes, group.outputs
        raise UnsupportedNodeError(node.name, node.op, "the datapath has no such operator", "replace it")

    @staticmethod
    def _quantize(graph: Graph, node: Node) -> tuple[Graph, Node]:
        """Take a QuantizeLinear outside of groups: at an input of the model, or behind a DequantizeLinear."""
        x, scale, zero = (*node.inputs, "")[:3]
        kind = quantisation.activation(graph, node, node.output, scale, zero)
        typed = quantisation.with_types(graph, kind)
        if x in graph.inputs and graph.tensors[x].dtype == "float32":
            return typed, Node("Quantize", (x,), node.output, {}, node.onnx_nodes)
        source = graph.producer(x)
        if source is not None and source.op == "DequantizeLinear":
            before = _type_behind(graph, source)
            if before.same_quantisation(kind):
                return typed, with_bounds("QClamp", node, (before.name,), kind.dtype)
        return typed, node.with_(reason="its input is computed in float")


def _with_borders(graph: Graph) -> Graph:
    """Drop each DequantizeLinear that nothing reads; one that only makes an output of the model becomes Dequantize."""
    read = {name for node in graph.nodes for name in node.inputs}
    nodes = []
    for node in graph.nodes:
        if node.op == "DequantizeLinear" and node.output not in read:
            if node.output not in graph.outputs:
                continue
            if graph.tensors[node.inputs[0]].quantised:
                node = Node("Dequantize", node.inputs[:1], node.output, {}, node.onnx_nodes)
        nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


class _Group:
    """One float operator with the DequantizeLinear before it and the QuantizeLinear behind it."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.clip, self.quantize = self._followers()
        names = (*self.quantize.inputs[1:], "")[:2]
        self.kind = quantisation.activation(graph, self.quantize, self.quantize.output, *names)
        self.scale, self.zero_point = self.kind.parameters
        # What stands between and does more than the quantisation makes ONNX Runtime compute the operator in float.
        self.clamps = self.clip is not None and not self._redundant(self.clip)

    @property
    def outputs(self) -> set[str]:
        """Outputs of the nodes that the group's operator stands for, besides the first."""
        return {node.output for node in (self.clip, self.quantize) if node is not None}

    def recognise(self) -> tuple[Graph, tuple[Node, ...]]:
        """Return the graph with all types and constants, and what stands for the group: an operator, and a reshape."""
        if self.node.op in MOVES:
            return self._moved()
        if self.node.op in SHUFFLES:
            return self._shuffled()
        if self.node.op in ("BatchNormalization", *ARITHMETIC) and (scaled := self._scaled()) is not None:
            return scaled
        if self.node.op == "Mul" and self.clip is None:
            return self._multiplied()
        graph, node = self._integer()
        if self.node.attrs.get("rounded", 0):
            node = node.with_attrs(exact=False)
        if self.clip is not None and self.clamps:
            clamp = moving_node(graph, self.clip, "", self.kind.dtype, *self._bounds(self.clip))
            node = node.with_attrs(low=clamp.attrs["low"], high=clamp.attrs["high"], exact=False,
                                   ).with_(onnx_nodes=node.onnx_nodes + self.clip.onnx_nodes)
        _, shape = inferred(graph, node)
        known = graph.tensors[node.output].shape or shape
        if len(known) != len(shape):
            return reshape_behind(graph, node, shape)
        # Of ceil_mode, ONNX's own inference has another idea than all that compute it.
        output = replace(graph.tensors[node.output], shape=shape)
        return graph.with_(tensors={**graph.tensors, node.output: output}), (node,)

    def _shuffled(self) -> tuple[Graph, tuple[Node, ...]]:
        """Return the same operator on integers, for the host core."""
        x = self._data_input(self.node.inputs[0])
        if not x.same_quantisation(self.kind):
            raise self._refusal("its input and output have different scales or zero points", "give them one")
        graph = quantisation.with_types(self.graph, x, self.kind)
        new = self.node.with_(inputs=(x.name, *self.node.inputs[1:]), output=self.kind.name,
                              reason="the datapath moves no elements one by one")
        return graph, (new,)

    def _scaled(self) -> tuple[Graph, tuple[Node, ...]] | None:
        """Return a depthwise 1x1 convolution for s x + t with constants per channel; None if it is something else."""
        fixed = {node.output: dequantised(node, [self.graph.constants[name] for name in node.inputs if name])
                 for node in (self.graph.producer(name) for name in self.node.inputs)
                 if node is not None and node.op == "DequantizeLinear" and set(node.inputs) - {""} <=
                 self.graph.constants.keys()}
        found = affine_of(quantisation.with_constants(self.graph, fixed), self.node)
        if found is None:
            return None
        x, (name, factor, offset) = self._data_input(found[0]), found
        channels = (self.graph.tensors[name].shape or (1, 1))[1]
        if x.dtype != self.kind.dtype or not np.isfinite(factor).all():
            raise self._refusal("its tensors are int8 and uint8 mixed", "quantise all activations to one type")
        # 64 levels of weight for one of x leave the offset six bits of fraction.
        size = np.where(factor == 0, 1.0, np.abs(factor))
        weights = np.broadcast_to(64 * np.sign(factor), channels).astype(np.int8).reshape(channels, 1, 1, 1)
        scale = np.broadcast_to(size / 64, channels).astype(np.float32)
        bias = np.rint(np.broadcast_to(offset, channels) / (x.parameters[0] * scale.astype(np.float64)))
        if np.abs(bias).max() >= 2.0**31:
            raise self._refusal("its constants do not fit int32 at the scale of its input", "use a larger scale")
        graph, new = weighted_node(
            quantisation.with_types(self.graph, x, self.kind), self.node.with_(output=self.kind.name), x.name,
            self.kind.dtype, (weights, scale), bias.astype(np.int32), group=channels, exact=False)
        if self.clip is not None and self.clamps:
            clamp = moving_node(graph, self.clip, "", self.kind.dtype, *self._bounds(self.clip))
            new = new.with_attrs(low=clamp.attrs["low"], high=clamp.attrs["high"])
        inferred(graph, new)
        return graph, (new,)

    def _multiplied(self) -> tuple[Graph, tuple[Node, ...]]:
        """Return a QLinearMul, which the host core computes from integers to integers; all as after ShiftUnsigned."""
        unsigned = self.kind.dtype == "uint8"
        graph, names, constants = self.graph, [], {}
        for index, name in enumerate(self.node.inputs):
            source = graph.producer(name)
            if source is None or source.op != "DequantizeLinear":
                raise self._refusal(f"its input {name!r} is float", "quantise every activation of the model")
            fixed = graph.constants.get(source.inputs[0])
            tensor = _type_behind(graph, source)
            if tensor.dtype != self.kind.dtype:
                raise self._refusal("its tensors are int8 and uint8 mixed", "quantise all activations to one type")
            names.append(tensor.name)
            if fixed is None:
                graph = quantisation.with_types(graph, tensor)
            else:
                names[-1] = f"{self.kind.name}:factor{index}"
                constants[names[-1]] = (fixed.astype(np.int16) - 128 * unsigned).astype(np.int8)
            names += self._parameters(tensor, f"{self.kind.name}:{index}", constants)
        names += self._parameters(self.kind, self.kind.name, constants)
        graph = quantisation.with_constants(quantisation.with_types(graph, self.kind), constants)
        new = self.node.with_(op="QLinearMul", inputs=tuple(names), output=self.kind.name,
                              attrs={"unsigned": int(unsigned)}, reason="the datapath multiplies by constants only")
        return graph, (new,)

    @staticmethod
    def _parameters(tensor: Tensor, prefix: str, constants: dict[str, np.ndarray]) -> tuple[str, str]:
        """Add scale and int8 zero point of a tensor to ``constants`` and return their names."""
        scale, zero = tensor.parameters
        constants[f"{prefix}:scale"] = np.array(scale, np.float32)
        constants[f"{prefix}:zero"] = np.array(zero - 128 * (tensor.dtype == "uint8"), np.int8)
        return f"{prefix}:scale", f"{prefix}:zero"

    def _moved(self) -> tuple[Graph, tuple[Node, ...]]:
        """Return the integer operator of a move, and tables before it for inputs of another quantisation."""
        graph, node, tables = self.graph, self.node, []
        inputs = [self._data_input(name) for name in (node.inputs if node.op == "Concat" else node.inputs[:1])]
        graph = quantisation.with_types(graph, *inputs, self.kind)
        names = []
        for index, tensor in enumerate(inputs):
            if tensor.same_quantisation(self.kind):
                names.append(tensor.name)
                continue
            name = f"{self.kind.name}:input{index}"
            new = replace(self.kind, name=name, shape=tensor.shape)
            graph = graph.with_(tensors={**graph.tensors, name: new})
            source = self.graph.producer(node.inputs[index])
            assert source is not None
            rescale = (source.with_(onnx_nodes=()),
                       self.quantize.with_(inputs=(source.output, *self.quantize.inputs[1:]), output=name,
                                           onnx_nodes=node.onnx_nodes))
            try:
                tables.append(table_node(graph, rescale, tensor, new))
            except TableError as error:
                raise self._refusal("ONNX Runtime does not change the scale of its inputs", "give them one") from error
            names.append(name)
        value = 0.0
        if node.op == "Pad":
            constant = node.inputs[2] if len(node.inputs) > 2 else ""
            value = quantisation.constant(graph, node, constant, "value").item() if constant else \
                node.attrs.get("value", 0.0)
        moved = move_node(graph, node, tuple(names), self._level(np.float32(value))).with_(output=self.kind.name)
        known = graph.tensors[moved.output].shape
        if known is not None and inferred(graph, moved)[1] != known:
            raise self._refusal(f"its result has the shape {list(known)}", "use another shape")
        return graph, (*tables, moved)

    def _integer(self) -> tuple[Graph, Node]:
        node = self.node.with_(output=self.quantize.output)
        inputs = [self._data_input(name) for name in self.node.inputs[:2 if node.op == "Add" else 1]]
        if node.op in ("Sub", "Mul", "Div", "BatchNormalization"):
            raise self._refusal("the datapath has no such operator", "replace it")
        if any(tensor.dtype != self.kind.dtype for tensor in inputs):
            raise self._refusal("its tensors are int8 and uint8 mixed", "quantise all activations to one type")
        graph = quantisation.with_types(self.graph, *inputs, self.kind)
        x, dtype = inputs[0].name, self.kind.dtype
        if node.op in _WEIGHTED:
            return self._weighted(graph, node, inputs[0])
        if node.op == "ConvTranspose":
            return self._transposed(graph, node, inputs[0])
        if node.op == "Add":
            return graph, with_bounds("QAdd", node, (x, inputs[1].name), dtype)
        if node.op in _AVERAGES:
            return graph, self._average(graph, node, x, dtype)
        if not inputs[0].same_quantisation(self.kind):
            raise self._refusal("its input and output have different scales or zero points",
                                "give them one, as onnxruntime.quantization does")
        return graph, moving_node(graph, node, x, dtype, *self._bounds(node))

    def _average(self, graph: Graph, node: Node, x: str, dtype: str) -> Node:
        if node.op == "ReduceMean":
            axes = node.attrs.get("axes")
            if len(node.inputs) > 1 and node.inputs[1]:
                axes = quantisation.constant(graph, node, node.inputs[1], "axes").ravel()
            rank = len(graph.tensors[x].shape or ())
            if rank != 4 or axes is None or {int(axis) % rank for axis in axes} != {2, 3}:
                raise self._refusal("it averages over other axes than height and width", "average over those")
            # ONNX Runtime has no integer kernel for it.
            return with_bounds("QAverage", node, (x,), dtype, exact=False)
        attrs = window_attrs(node) if node.op == "AveragePool" else {}
        return with_bounds("QAverage", node, (x,), dtype, **attrs)

    def _refusal(self, reason: str, way_out: str) -> UnsupportedNodeError:
        return UnsupportedNodeError(self.node.name, self.node.op, reason, way_out)

    def _followers(self) -> tuple[Node | None, Node]:
        """Return the Relu or Clip behind the operator, if there is one, and the QuantizeLinear behind all."""
        following = self.graph.only_reader(self.node.output)
        if following is not None and following.op in ("Relu", "Clip") and self.node.op not in _MOVING:
            clip, following = following, self.graph.only_reader(following.output)
        else:
            clip = None
        if following is None or following.op != "QuantizeLinear":
            raise self._refusal("its result is not quantised at once and only once, so ONNX Runtime computes it in "
                                "float", "quantise every activation of the model, outputs included")
        return clip, following

    def _data_input(self, name: str) -> Tensor:
        source = self.graph.producer(name)
        if source is None or source.op != "DequantizeLinear":
            raise self._refusal(f"its input {name!r} is float", "quantise every activation of the model")
        if source.inputs[0] in self.graph.constants:
            raise self._refusal(f"its input {name!r} is a constant", "fold the constant into a bias")
        return _type_behind(self.graph, source)

    def _weighted(self, graph: Graph, node: Node, x: Tensor) -> tuple[Graph, Node]:
        bias_name = (*node.inputs, "", "")[2]
        axis, attrs = weight_layout(node, bool(bias_name))
        source = graph.producer(node.inputs[1])
        if source is None or source.op != "DequantizeLinear":
            raise self._refusal("its weights are float", "quantise the weights to int8")
        values, scale, zero = (*source.inputs, "")[:3]
        packed = quantisation.weights(graph, node, values, scale, zero, axis)
        if packed[1].size > 1 and source.attrs.get("axis", 1) % packed[0].ndim != axis:
            raise self._refusal("the scales of its weights are not those of its output channels",
                                f"quantise the weights along axis {axis}")
        bias = self._bias(graph, bias_name, x, packed[1]) if bias_name else None
        return weighted_node(graph, node, x.name, self.kind.dtype, packed, bias, **attrs)

    def _transposed(self, graph: Graph, node: Node, x: Tensor) -> tuple[Graph, Node]:
        source = graph.producer(node.inputs[1])
        if source is None or source.op != "DequantizeLinear":
            raise self._refusal("its weights are float", "quantise the weights to int8")
        values, scale, zero = (*source.inputs, "")[:3]
        groups = node.attrs.get("group", 1)
        levels, factors = transposed_weights(graph, node, values, scale, zero, groups)
        if factors.size > 1 and source.attrs.get("axis", 1) % levels.ndim != 1:
            raise self._refusal("the scales of its weights are not those of its output channels",
                                "quantise the weights along axis 1")
        bias_name = (*node.inputs, "", "")[2]
        constants = {"weights": levels, "scale": factors}
        if bias_name:
            constants["bias"] = bias_vector(node, self._bias(graph, bias_name, x, factors), levels.shape[1] * groups)
        names = {f"{node.output}:{name}": value for name, value in constants.items()}
        # ONNX Runtime has no integer kernel for it.
        new = with_bounds("QConvTranspose", node, (x.name, *names, *("",) * (3 - len(names))), self.kind.dtype,
                          **transposed_attrs(node, levels.shape[2:]), exact=False)
        return quantisation.with_constants(graph, names), new

    def _bias(self, graph: Graph, name: str, x: Tensor, weight_scale: np.ndarray) -> np.ndarray:
        """Return the int32 bias; ONNX Runtime quantises a float one by the product of the scales."""
        source = graph.producer(name)
        if source is not None and source.op == "DequantizeLinear":
            levels = quantisation.constant(graph, source, source.inputs[0], "bias")
            if quantisation.scales(graph, source, source.inputs[1]).size not in (1, levels.size):
                raise BadModelError(f"Bias of node {self.node.name!r} must have 1 scale or {levels.size}")
            return levels
        values = quantisation.constant(graph, self.node, name, "bias")
        if values.dtype != np.float32 or values.ndim != 1 or weight_scale.size not in (1, values.size):
            raise self._refusal("its bias is neither int32 nor a float32 vector", "quantise the bias to int32")
        levels = np.rint(values / (x.parameters[0] * weight_scale))
        if not np.all(np.abs(levels) < 2.0**31):
            raise self._refusal("its bias does not fit int32 at the product of the scales", "use a larger scale")
        return levels.astype(np.int32)

    def _bounds(self, node: Node) -> tuple[int | None, int | None]:
        """Return the integer bounds of a Relu or Clip at the group's quantisation."""
        return tuple(None if bound is None else self._level(bound)  # type: ignore[return-value]
                     for bound in self._float_bounds(node))

    def _float_bounds(self, node: Node) -> tuple[np.float32 | None, np.float32 | None]:
        if node.op == "Relu":
            return np.float32(0), None
        if node.op != "Clip":
            return None, None
        found = []
        for name, attribute in zip((*node.inputs[1:], "", "")[:2], ("min", "max"), strict=True):
            source = self.graph.producer(name)
            if name and source is not None:
                raise self._refusal(f"its bound {name!r} is computed while the model runs", "make it a constant")
            value = self.graph.constants[name].item() if name else node.attrs.get(attribute)
            found.append(None if value is None else np.float32(value))
        return found[0], found[1]

    def _level(self, value: np.float32) -> int:
        bounds = np.iinfo(self.kind.dtype)
        with np.errstate(over="ignore"):
            level = np.rint(value / self.scale) + self.zero_point
        return int(np.clip(level, bounds.min, bounds.max))

    def _redundant(self, clip: Node) -> bool:
        """Tell whether saturation does what ``clip`` does."""
        low, high = self._float_bounds(clip)
        bounds = np.iinfo(self.kind.dtype)
        bottom, top = (self.scale * np.float32(int(level) - self.zero_point)
                       for level in (bounds.min, bounds.max))
        return bool((low is None or low <= bottom) and (high is None or high >= top))


def _type_behind(graph: Graph, dequantize: Node) -> Tensor:
    """Return the type of the integer tensor that a DequantizeLinear reads."""
    x, scale, zero = (*dequantize.inputs, "")[:3]
    return quantisation.activation(graph, dequantize, x, scale, zero)
