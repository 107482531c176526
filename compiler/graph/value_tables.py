"""ONNX Runtime's kernels in the compiler: the result of a chain of elementwise operators for each of 256 integers.

A function of one quantised tensor into another is a table of 256 entries, whatever it computes in between. ONNX
Runtime itself fills it, with the fusions and kernels that it would run the chain with in the whole model; so the
table is exact by construction.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import onnxruntime
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxOperator, OnnxQuantizeLinear
from tilewright.errors import Error

__all__ = ["TableError", "table_of", "tables_of"]

_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT}
_DEFAULT_OPSET = 17
_IR_VERSION = 9
_AXIS_OPSET = 13
"""From which on QuantizeLinear and DequantizeLinear have an axis; what the compiler makes always states it."""


class TableError(Error):
    """ONNX Runtime does not compute the chain."""


def table_of(nodes: Sequence[Node], x: str, dtype: str, rank: int, output: str, output_dtype: str,
             constants: Mapping[str, np.ndarray], opset: int = 0) -> np.ndarray:
    """Return the result of ``nodes`` for every value of an integer tensor.

    Parameters
    ----------
    nodes : sequence of Node
        ONNX's operators from DequantizeLinear of ``x`` to what writes ``output``, in an order in which they can be
        executed.
    x, dtype, rank : str, str, int
        The input: int8 or uint8, of that many dimensions (at least 2) in the model.
    output, output_dtype : str, str
        The output: int8, uint8 or float32.
    constants : mapping of str to ndarray
        Those that the nodes read, and any others.
    opset : int
        Version of the operators; 0 if that does not matter.

    Returns
    -------
    ndarray
        ``output_dtype`` of shape (256,), by ascending input.

    Raises
    ------
    TableError
        If ONNX Runtime does not take the nodes.
    """
    shape = (*(1,) * (rank - 2), 16, 16)
    opset = opset or _DEFAULT_OPSET
    return _run(_model(nodes, x, dtype, shape, output, output_dtype, constants, opset), x, dtype, shape)


def tables_of(nodes: Sequence[Node], x: str, dtype: str, channels: int, output: str, output_dtype: str,
              constants: Mapping[str, np.ndarray], opset: int = 0) -> np.ndarray:
    """Return the result of ``nodes`` for every value in every channel of a tensor (1, channels, height, width).

    Parameters, errors and the rest are those of :func:`table_of`; the result is ``output_dtype`` (channels, 256).
    """
    opset = opset or _DEFAULT_OPSET
    shape = (1, channels, 16, 16)
    model = _model(nodes, x, dtype, shape, output, output_dtype, constants, opset)
    return _run(model, x, dtype, shape).reshape(channels, 256)


def _model(nodes: Sequence[Node], x: str, dtype: str, shape: tuple[int, ...], output: str, output_dtype: str,
           constants: Mapping[str, np.ndarray], opset: int) -> bytes:
    """Return a model of ``nodes`` alone, for an input of ``shape``."""
    needed = {name: constants[name] for node in nodes for name in node.inputs if name in constants}
    graph = helper.make_graph(
        [_made(node, opset) for node in nodes],
        "table", [helper.make_tensor_value_info(x, _TYPES[dtype], shape)],
        [helper.make_tensor_value_info(output, _TYPES[output_dtype], shape)],
        [numpy_helper.from_array(value, name) for name, value in needed.items()])
    model = helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    return model.SerializeToString(deterministic=True)


def _made(node: Node, opset: int) -> NodeProto:
    if not isinstance(node.operator, OnnxOperator):
        raise TableError(f"Node {node.name!r} must be ONNX's, not {node.op}")
    attributes = dict(node.operator.attributes)
    if opset < _AXIS_OPSET and isinstance(node.operator, OnnxQuantizeLinear | OnnxDequantizeLinear):
        attributes.pop("axis", None)
    return helper.make_node(node.op, list(node.inputs), [node.output], domain=node.operator.domain(opset), **attributes)


@lru_cache(maxsize=256)
def _run(model: bytes, x: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    # As runtime/oracle/onnx_runtime.py runs the whole model.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.add_session_config_entry("session.disable_double_qdq_remover", "1")
    options.log_severity_level = 4
    bounds = np.iinfo(dtype)
    values = np.resize(np.arange(bounds.min, bounds.max + 1).astype(dtype), shape)
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        (result,) = session.run(None, {x: values})
    except Exception as error:
        # onnxruntime's exceptions have no common base but this.
        raise TableError(str(error)) from error
    table = np.asarray(result).reshape(-1)
    table.setflags(write=False)
    return table
