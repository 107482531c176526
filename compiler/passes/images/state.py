"""A graph while it is rewritten to images: its nodes so far, and the forms in which each tensor exists."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import GraphOperator, Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxDequantizeLinear,
    OnnxReshape,
    OnnxSqueeze,
    OnnxTranspose,
    OnnxUnsqueeze,
)
from tilewright.compiler.network.image_forms import LINE, ROWS, Form
from tilewright.compiler.passes.images.constant_changes import ConstantChange

__all__ = ["ImageState"]

_TO_CHANNELS_FIRST, _TO_CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


class ImageState:
    """Nodes are added in order; conversions between a tensor and its image are added where one is asked for.

    Attributes
    ----------
    graph : Graph
        The graph as it was.
    absorbed : set of str
        Outputs of nodes that another one stands for already.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self.constants: dict[str, np.ndarray] = dict(graph.constants)
        self.absorbed: set[str] = set()
        self._forms: dict[str, Form] = {}
        self._missing: set[str] = set()

    def finished(self) -> Graph:
        """Return the rewritten graph."""
        for name in self.graph.outputs:
            self.plain(name)
        return self.graph.with_(nodes=tuple(self.nodes), tensors=self.tensors, constants=self.constants)

    def form(self, name: str) -> Form | None:
        """Return the form in which a tensor is an image, if it is one."""
        return self._forms.get(name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape that a tensor has in the model."""
        if name in self.graph.constants:
            return self.graph.constants[name].shape
        return self.graph.tensors[name].shape if name in self.graph.tensors else None

    def add_plain(self, node: Node) -> None:
        """Add a node as it is."""
        for name in node.inputs:
            self.plain(name)
        self.nodes.append(node)

    def add(self, node: Node, operator: GraphOperator, inputs: tuple[str, ...], form: Form, output: str = "") -> None:
        """Add ``operator`` on images; it writes the image of ``output``, else of the node's own."""
        name = output or node.output
        tensor = self.graph.tensors[name]
        shape = form.shape(tensor.shape) if form.suits(tensor.shape) and tensor.shape is not None else None
        image = name + form.suffix
        self.tensors[image] = replace(tensor, name=image, shape=shape)
        self.nodes.append(node.with_(operator=operator, inputs=inputs, output=image))
        self._forms[name] = form
        self._missing.add(name)

    def plain(self, name: str) -> str:
        """Return a tensor in the model's form, made from its image if only that exists."""
        if name not in self._missing:
            return name
        self._missing.discard(name)
        form, shape = self._forms[name], self.shape(name)
        source, made = name + form.suffix, self.graph.producer(name)
        if made is not None and isinstance(made.operator, OnnxDequantizeLinear):
            self.add_plain(made)    # Integers are a quarter of the bytes, and may not have to move at all.
            return name
        if form != ROWS:
            axes = (2,) if form == LINE else (0, 2)
            self.nodes.append(Node(OnnxSqueeze(), (source, self.integers(source, "axes", axes)), name))
            return name
        if len(shape or ()) == 4:
            self.nodes.append(Node(OnnxTranspose({"perm": _TO_CHANNELS_LAST}), (source,), name))
            return name
        self.nodes.append(Node(OnnxTranspose({"perm": _TO_CHANNELS_LAST}), (source,), f"{name}:pixels"))
        self._intermediate(name, source, f"{name}:pixels")
        self.nodes.append(Node(OnnxReshape(), (f"{name}:pixels", self.integers(name, "shape", shape or ())), name))
        return name

    def make(self, node: Node, shape: tuple[int, ...], dtype: str) -> str:
        """Add a node that makes a tensor of that shape and type, and return the tensor's name."""
        self.tensors[node.output] = Tensor(node.output, shape, dtype)
        self.nodes.append(node)
        return node.output

    def reshape(self, name: str, shape: tuple[int, ...], output: str) -> str:
        """Add the node that makes ``output``, of another shape, of a tensor, and return its name."""
        node = Node(OnnxReshape(), (name, self.integers(output, "shape", shape)), output)
        return self.make(node, shape, self.tensors[name].dtype)

    def reshaped(self, node: Node, shape: tuple[int, ...]) -> None:
        """Add a node that makes another shape of an image, without the shape between."""
        name = node.inputs[0]
        form = self._forms[name]
        source = name + form.suffix
        if form == ROWS:
            source = f"{name}:pixels before {node.output}"
            self.nodes.append(Node(OnnxTranspose({"perm": _TO_CHANNELS_LAST}), (name + form.suffix,), source))
            self._intermediate(name, name + form.suffix, source)
        target = self.integers(node.output, "shape", shape)
        self.nodes.append(node.with_(operator=OnnxReshape(), inputs=(source, target)))

    def image(self, name: str, form: Form) -> str:
        """Return the image of a computed tensor, made from the tensor if there is none."""
        if self._forms.get(name) == form:
            return name + form.suffix
        self.plain(name)
        image, tensor = name + form.suffix, self.graph.tensors[name]
        shape = form.shape(tensor.shape or ())
        self.tensors[image] = replace(tensor, name=image, shape=shape)
        self._forms[name] = form
        if form != ROWS:
            axes = (2,) if form == LINE else (0, 2)
            self.nodes.append(Node(OnnxUnsqueeze(), (name, self.integers(image, "axes", axes)), image))
        elif len(tensor.shape or ()) == 4:
            self.nodes.append(Node(OnnxTranspose({"perm": _TO_CHANNELS_FIRST}), (name,), image))
        else:
            pixels = f"{name}:as pixels"
            self.tensors[pixels] = replace(tensor, name=pixels, shape=(1, shape[2], shape[3], shape[1]))
            self.nodes.append(Node(OnnxReshape(), (
                name, self.integers(pixels, "shape", (1, shape[2], shape[3], shape[1]))), pixels))
            self.nodes.append(Node(OnnxTranspose({"perm": _TO_CHANNELS_FIRST}), (pixels,), image))
        return image

    def fixed(self, name: str) -> bool:
        """Tell whether a value is a constant, or one that is only dequantised."""
        if name in self.graph.constants:
            return True
        source = self.graph.producer(name)
        return source is not None and isinstance(source.operator, OnnxDequantizeLinear) \
            and self.graph.all_constant(each for each in source.inputs if each)

    def changed(self, name: str, suffix: str, change: ConstantChange) -> str:
        """Return a fixed value with its elements rearranged; ``suffix`` distinguishes it from others of the same."""
        new = name + suffix
        if name in self.graph.constants:
            self.constants[new] = change.values(self.graph.constants[name])
            return new
        source = self.graph.producer(name)
        assert source is not None
        operator = source.operator
        assert isinstance(operator, OnnxDequantizeLinear)
        inner = self.changed(source.inputs[0], suffix, change)
        if new not in self.tensors:
            rank = len(self.shape(name) or self.shape(source.inputs[0]) or (1,))
            operator = operator.with_attributes(axis=change.axis(int(operator.axis), rank))
            self.tensors[new] = replace(self.graph.tensors[name], name=new, shape=None)
            self.nodes.append(source.with_(operator=operator, inputs=(inner, *source.inputs[1:]), output=new))
        return new

    def integers(self, name: str, what: str, values: tuple[int, ...]) -> str:
        """Add a constant list of integers and return its name."""
        constant = f"{name}:{what} of its image"
        self.constants[constant] = np.array(values, np.int64)
        return constant

    def _intermediate(self, name: str, image: str, pixels: str) -> None:
        """Add the tensor that an image is with its channels last."""
        shape = self.tensors[image].shape
        self.tensors[pixels] = replace(self.graph.tensors[name], name=pixels, shape=None if shape is None else tuple(
            shape[axis] for axis in _TO_CHANNELS_LAST))
