"""Operators that the unit of an extension computes: ``ArgMax(x)`` of the core becomes ``Cast(QUnit(x))``.

The extension says whether it can; it is believed only where what it computes is what the core's kernel does, on random
tensors. Every run is compared with ONNX Runtime besides.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QUnit
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_names import onnx_operator
from tilewright.compiler.graph.onnx_operators import OnnxOperator
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.kernels.execute import run_call
from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layer_uses import UnitUse
from tilewright.compiler.passes.lower.build_core import core_info, core_layer, is_core
from tilewright.isa.extension import BufferUnit

__all__ = ["RecogniseUnit"]

_ONNX_TYPES = {"int8": 3, "int16": 5, "int32": 6, "int64": 7, "uint8": 2, "bool": 9}
"""onnx.TensorProto's numbers of the types that a result may be cast to."""

_REASON = "the result of an extension's unit is int8"

_TRIED = (16, 32)
"""Rows and columns of the tensors that a unit is tried on."""


class RecogniseUnit(Pass):
    """Replace one of the unit's operators on an int8 image by a QUnit, a Reshape where it drops an axis, and a Cast."""

    def __init__(self, unit: BufferUnit) -> None:
        self.unit = unit

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if is_core(node) and node.op in self.unit.operators and (use := self._fitted(graph, node)) is not None:
                graph = self._replaced(graph, node, use)
        return graph

    def _fitted(self, graph: Graph, node: Node) -> UnitUse | None:
        """Return how the unit computes ``node``; None if it cannot."""
        unit, operator = self.unit, node.operator
        x, y = (graph.tensors.get(name) for name in (node.inputs[0], node.output))
        if not isinstance(operator, OnnxOperator) or x is None or y is None or not x.shape or y.shape is None \
                or x.dtype != "int8" or not x.quantised or len(x.shape) != 4 or x.shape[0] != 1 \
                or y.dtype not in _ONNX_TYPES or any(node.inputs[1:]):
            return None
        channels, height, width = x.shape[1:]
        if not unit.result_bytes <= channels < 1 << 12 or int(np.prod(y.shape)) != unit.result_bytes * height * width \
                or (unit.result_bytes > 1 and y.shape != (1, unit.result_bytes, height, width)):
            return None
        found = unit.called("fit", operator.attributes, channels)
        if found is None:
            return None
        use = UnitUse(unit, tuple(unit.values(found).items()))
        return use if self._agrees(graph, node, use, (x, y)) else None

    def _agrees(self, graph: Graph, node: Node, use: UnitUse, tensors: tuple[Tensor, Tensor]) -> bool:
        """Tell whether the unit computes what the core's kernel does, on random tensors with many equal values."""
        small = [replace(each, shape=(*(each.shape or ())[:-2], *_TRIED)) for each in tensors]
        call = core_call(core_layer(graph, node, node.output),
                         {each.name: replace(core_info(each), place=None) for each in small}, {})
        if refusal_of(call) is not None:
            return False
        random, shape = np.random.default_rng(0), small[0].shape
        for low, high in ((-128, 128), (-2, 3), (126, 128), (-128, -126)):
            values = random.integers(low, high, shape).astype(np.int8)
            wanted = run_call(call, [values])
            found = use.compute(values[0])[:use.unit.result_bytes]
            if not np.array_equal(wanted.reshape(found.shape), found):
                return False
        return True

    def _replaced(self, graph: Graph, node: Node, use: UnitUse) -> Graph:
        x, y = graph.tensors[node.inputs[0]], graph.tensors[node.output]
        assert x.shape is not None
        assert y.shape is not None
        shape = 1, use.unit.result_bytes, *x.shape[2:]
        result = Tensor(f"{y.name}:{use.unit.mnemonic}", shape, "int8", np.float32(1), 0)
        nodes = [Node(QUnit(use=use), node.inputs[:1], result.name, node.onnx_nodes)]
        added = [result]
        if y.shape != shape:
            flat = Tensor(f"{y.name}:shaped", y.shape, "int8", np.float32(1), 0)
            dims = f"{y.name}:dims"
            graph = graph.with_constants({dims: np.array(y.shape, np.int64)})
            nodes.append(Node(onnx_operator("Reshape", {}), (result.name, dims), flat.name, node.onnx_nodes, _REASON))
            added.append(flat)
        nodes.append(Node(onnx_operator("Cast", {"to": _ONNX_TYPES[y.dtype]}), (added[-1].name,), y.name,
                          node.onnx_nodes, _REASON))
        return graph.with_tensors(*added).replaced((node,), *nodes)
