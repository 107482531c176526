"""Operators in which ONNX Runtime's optimiser has joined several are those again.

Source: ContribOperators.md of ONNX Runtime: FusedConv, FusedGemm, FusedMatMul, BiasGelu, FastGelu, DynamicQuantizeLSTM,
SkipLayerNormalization, DynamicQuantizeMatMul and MatMulIntegerToFloat.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.forms.gains import scaled_constant
from tilewright.compiler.normal.inserted_moves import transposed
from tilewright.compiler.normal.ranks import rank_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant

__all__ = ["FUSED", "RECURRENT"]

_DOMAIN = "com.microsoft"
_OF_ACTIVATION = ("activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma")
_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
_TURNS, _TURNED_BATCHES = ("transA", "transB"), ("transBatchA", "transBatchB")
_GELU_OPSET, _BOUNDS_ARE_INPUTS, _NORMALISATION_OPSET = 20, 11, 17
_SKIP_EPSILON = 1e-12
_SUM = 3
"""Which of the results of a SkipLayerNormalization is the sum that it normalises."""

_TANH_FACTOR, _TANH_CUBE = 0.7978845608028654, 0.044715
"""sqrt(2 / pi), and the factor of the cube beside it, of the approximation of a Gelu by a Tanh."""



def _apply(edit: Edit) -> int:
    return sum(_taken_apart(edit, node) for node in edit.nodes() if node.domain == _DOMAIN and node.op_type in _FORMS)


def _taken_apart(edit: Edit, node: ir.Node) -> bool:
    new: ir.Value | None = _FORMS[node.op_type](edit, node)
    if new is None:
        return False
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _product(edit: Edit, node: ir.Node) -> ir.Value | None:
    """Return a FusedConv or FusedGemm as its product, a sum if it has one, and its activation."""
    name = node.op_type.removeprefix("Fused")
    given = list(node.inputs)
    value = edit.insert(node, name, given[:3] if len(given) < 3 or given[2] is not None else given[:2])
    maker = value.producer()
    assert maker is not None
    maker.attributes.update({key: each for key, each in node.attributes.items() if key not in _OF_ACTIVATION})
    if len(given) > 3 and given[3] is not None:
        value = edit.insert(node, "Add", [value, given[3]])
    return _activated(edit, node, value)


def _activated(edit: Edit, node: ir.Node, value: ir.Value) -> ir.Value:
    name = str(attribute(node, "activation", ""))
    stated = [attribute(node, f"activation_{each}") for each in ("alpha", "beta")]
    numbers = [float(each) for each in attribute(node, "activation_params", [n for n in stated if n is not None])]
    if not name:
        return value
    if name != "Clip":
        return edit.insert(node, name, [value], dict(zip(_PARAMETERS.get(name, ()), numbers, strict=False)))
    if edit.opset < _BOUNDS_ARE_INPUTS:
        return edit.insert(node, name, [value], dict(zip(("min", "max"), numbers, strict=False)))
    return edit.insert(node, name, [value, *(_number(edit, node, each) for each in numbers[:2])])


def _matrices(edit: Edit, node: ir.Node) -> ir.Value | None:
    """Return a FusedMatMul as Transposes, a MatMul and a Mul; None where no rank is known or batches are turned."""
    alpha, factors = float(attribute(node, "alpha", 1.0)), list(node.inputs[:2])
    ranks = [rank_of(each) if attribute(node, name, 0) else 0 for each, name in zip(factors, _TURNS, strict=True)]
    if None in factors or None in ranks or any(attribute(node, name, 0) for name in _TURNED_BATCHES):
        return None
    if alpha != 1 and (scaled := scaled_constant(edit, node, factors[1], alpha)) is not None:
        factors[1], alpha = scaled, 1.0
    operands = [transposed(edit, node, value, [*range(rank - 2), rank - 1, rank - 2] if rank > 1 else [])
                for value, rank in zip(factors, ranks, strict=True) if value is not None and rank is not None]
    product = edit.insert(node, "MatMul", operands)
    return product if alpha == 1 else edit.insert(node, "Mul", [product, _number(edit, node, alpha)])


def _with_bias(edit: Edit, node: ir.Node) -> ir.Value | None:
    return edit.insert(node, "Add", node.inputs[:2]) if len(node.inputs) > 1 and node.inputs[1] is not None \
        else node.inputs[0]


def _bias_gelu(edit: Edit, node: ir.Node) -> ir.Value | None:
    value = edit.insert(node, "Gelu", [_with_bias(edit, node)])
    maker = value.producer()
    if maker is not None and edit.opset < _GELU_OPSET:
        maker.domain = _DOMAIN
    return value


def _fast_gelu(edit: Edit, node: ir.Node) -> ir.Value | None:
    """Return x · (1 + Tanh(sqrt(2 / pi) · (x + 0.044715 · x³))) / 2, by ONNX's Gelu where there is one."""
    x = _with_bias(edit, node)
    if edit.opset >= _GELU_OPSET:
        return edit.insert(node, "Gelu", [x], {"approximate": "tanh"})

    def of(op: str, *operands: ir.Value | None) -> ir.Value:
        return edit.insert(node, op, operands)

    cube = of("Mul", of("Mul", of("Mul", x, x), x), _number(edit, node, _TANH_CUBE))
    bent = of("Tanh", of("Mul", of("Add", x, cube), _number(edit, node, _TANH_FACTOR)))
    return of("Mul", of("Mul", x, of("Add", bent, _number(edit, node, 1.0))), _number(edit, node, 0.5))


def _skip_normalisation(edit: Edit, node: ir.Node) -> ir.Value | None:
    """Return a SkipLayerNormalization as its sums and a LayerNormalization; None if a mean or deviation is read."""
    x, skip, gain, *others = node.inputs
    given = list(node.outputs)
    kept = {*edit.graph.outputs}
    if edit.opset < _NORMALISATION_OPSET or any(each.uses() or each in kept for each in given[1:_SUM]):
        return None
    total = edit.insert(node, "Add", [x, skip])
    if len(others) > 1 and others[1] is not None:
        total = edit.insert(node, "Add", [total, others[1]])
    total.type = ir.TensorType(ir.DataType.FLOAT)
    if len(given) > _SUM:
        edit.redirect(given[_SUM], total)
        edit.hand_on(given[_SUM], total)
    return edit.insert(node, "LayerNormalization", [total, gain, *others[:1]],
                       {"axis": -1, "epsilon": float(attribute(node, "epsilon", _SKIP_EPSILON))})


def _integer_product(edit: Edit, node: ir.Node) -> ir.Value | None:
    """Return a MatMulIntegerToFloat as the sums of its MatMulInteger, times both scales, plus the bias."""
    a, b, a_scale, b_scale, *others = node.inputs
    return _scaled_sums(edit, node, (a, b, *others[:2]), (a_scale, b_scale), others[2:])


def _dynamic_product(edit: Edit, node: ir.Node) -> ir.Value | None:
    """Return a DynamicQuantizeMatMul as such a product of what a DynamicQuantizeLinear makes of its first input."""
    a, b, b_scale, *others = node.inputs
    levels, scale, zero = edit.insert_several(node, "DynamicQuantizeLinear", [a], 3)
    for value, kind in ((levels, ir.DataType.UINT8), (scale, ir.DataType.FLOAT), (zero, ir.DataType.UINT8)):
        value.type = ir.TensorType(kind)
    return _scaled_sums(edit, node, (levels, b, zero, *others[:1]), (scale, b_scale), others[1:])


def _scaled_sums(edit: Edit, node: ir.Node, operands: Sequence[ir.Value | None], scales: Sequence[ir.Value | None],
                 bias: Sequence[ir.Value | None]) -> ir.Value:
    sums = edit.insert(node, "MatMulInteger", operands)
    real = edit.insert(node, "Cast", [sums], {"to": ir.DataType.FLOAT.value})
    value = edit.insert(node, "Mul", [real, edit.insert(node, "Mul", scales)])
    return edit.insert(node, "Add", [value, bias[0]]) if bias and bias[0] is not None else value


def _number(edit: Edit, node: ir.Node, value: float) -> ir.Value:
    return edit.constant(np.array(value, np.float32), f"{node.outputs[0].name}:number")


_FORMS: dict[str, Callable[[Edit, ir.Node], ir.Value | None]] = {
    "FusedConv": _product, "FusedGemm": _product, "FusedMatMul": _matrices, "BiasGelu": _bias_gelu,
    "FastGelu": _fast_gelu, "SkipLayerNormalization": _skip_normalisation, "DynamicQuantizeMatMul": _dynamic_product,
    "MatMulIntegerToFloat": _integer_product}


def _recurrences(edit: Edit) -> int:
    return sum(_in_float(edit, node) for node in edit.nodes()
               if node.domain == _DOMAIN and node.op_type == _DYNAMIC_LSTM)


def _in_float(edit: Edit, node: ir.Node) -> bool:
    """Replace a DynamicQuantizeLSTM by an LSTM of the floats that its levels stand for; tell whether they are known."""
    given = [*node.inputs, *[None] * (_RECURRENT_INPUTS - len(node.inputs))]
    weights = [_recurrent_weights(*given[place:place + 1], *given[at:at + 2]) for place, at in _LEVELS_AND_SCALES]
    if any(each is None for each in weights):
        return False
    names = [f"{node.name or node.outputs[0].name}:{each}" for each in ("weights", "recurrence")]
    floats = [edit.constant(each, name) for each, name in zip(weights, names, strict=True) if each is not None]
    new = edit.insert_several(node, "LSTM", [given[0], *floats, *given[3:8]], len(node.outputs),
                              {key: each.value for key, each in node.attributes.items()})
    for old, value in zip(node.outputs, new, strict=True):
        value.type, value.shape = old.type, old.shape
        edit.redirect(old, value)
        edit.hand_on(old, value)
    edit.drop(node)
    edit.note("what a DynamicQuantizeLSTM quantises at each step is left in float, or quantised by samples: these are "
              "the results of the LSTM with its weights, not those of the file")
    return True


def _recurrent_weights(levels: ir.Value | None, scale: ir.Value | None, zero: ir.Value | None) -> np.ndarray | None:
    """Return weights as an LSTM has them, (directions, gates, inputs), of levels the other way round."""
    held = [None if each is None else constant(each) for each in (levels, scale, zero)]
    if held[0] is None or held[1] is None or (zero is not None and held[2] is None):
        return None
    of_directions = (held[0].shape[0], 1, -1)
    zeros = np.zeros((1, 1, 1), np.int32) if held[2] is None else held[2].astype(np.int32).reshape(of_directions)
    real = (held[0].astype(np.int32) - zeros).astype(np.float32) * held[1].astype(np.float32).reshape(of_directions)
    return np.ascontiguousarray(real.transpose(0, 2, 1))


_DYNAMIC_LSTM = "DynamicQuantizeLSTM"
_RECURRENT_INPUTS = 12
_LEVELS_AND_SCALES = ((1, 8), (2, 10))
"""Which inputs of such an LSTM are levels, and where their scale and zero point are."""

RECURRENT = Rule("recurrent", "A DynamicQuantizeLSTM is an LSTM of the floats that its weights' levels stand for",
                 "NOT exact: what it reads at each step is not quantised; a note says so", _recurrences, exact=False)

FUSED = Rule("fused", "FusedConv, FusedGemm, FusedMatMul, BiasGelu, FastGelu, SkipLayerNormalization, "
             "DynamicQuantizeMatMul and MatMulIntegerToFloat are the operators that they join",
             "that is their definition (ContribOperators.md of ONNX Runtime)", _apply)
