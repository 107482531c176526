"""The normal form of a quantised model, made by rules that are applied until none changes anything.

docs/normal-form.md says what it is and is made from the rules' own words. Most rules change no value; of those that do,
each application is a note. A model without quantisation is left as it is.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.normal.arithmetic.behind_products import FACTORS, OFFSETS
from tilewright.compiler.normal.arithmetic.channel_scales import CHANNELS
from tilewright.compiler.normal.arithmetic.halved_sums import HALVES
from tilewright.compiler.normal.arithmetic.own_padding import PADDING
from tilewright.compiler.normal.arithmetic.pixel_products import PIXEL_PRODUCTS
from tilewright.compiler.normal.arithmetic.signs import SIGNS
from tilewright.compiler.normal.arithmetic.single_bounds import BOUNDS
from tilewright.compiler.normal.arithmetic.spelled_out import SPELLED_OUT
from tilewright.compiler.normal.arithmetic.whole_images import WHOLE
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.forms.attention import ATTENTION
from tilewright.compiler.normal.forms.constant_parts import MASKS, PARTS
from tilewright.compiler.normal.forms.einsum import EINSUM
from tilewright.compiler.normal.forms.far_taps import FAR_TAPS
from tilewright.compiler.normal.forms.flat_volumes import VOLUMES
from tilewright.compiler.normal.forms.fused import FUSED, RECURRENT
from tilewright.compiler.normal.forms.gains import GAINS
from tilewright.compiler.normal.forms.joined_products import JOINED
from tilewright.compiler.normal.forms.mirrored import MIRRORED
from tilewright.compiler.normal.forms.moved_functions import FUNCTIONS
from tilewright.compiler.normal.forms.narrow_levels import NARROW
from tilewright.compiler.normal.forms.pixel_shuffles import SHUFFLES
from tilewright.compiler.normal.forms.stacked_sums import STACKED
from tilewright.compiler.normal.forms.turned_products import TURNED_PRODUCTS
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.rules.biases import BIASES
from tilewright.compiler.normal.rules.constants import CONSTANTS
from tilewright.compiler.normal.rules.domains import DOMAINS
from tilewright.compiler.normal.rules.expand import EXPAND, EXPAND_ALL
from tilewright.compiler.normal.rules.idle import IDLE
from tilewright.compiler.normal.rules.image_bytes import IMAGES
from tilewright.compiler.normal.rules.layouts import LAYOUTS
from tilewright.compiler.normal.rules.moved_levels import EARLIER, INSIDE
from tilewright.compiler.normal.rules.pairs import PAIRS, ROUND_TRIPS
from tilewright.compiler.normal.rules.plain import PLAIN
from tilewright.compiler.normal.rules.repeats import PIXELS, REPEATS
from tilewright.compiler.normal.rules.storage import STORAGE
from tilewright.compiler.normal.rules.turns import TURNS
from tilewright.compiler.normal.rules.weight_levels import BLOCKS, WEIGHT_LEVELS
from tilewright.compiler.normal.taken_branches import BRANCHES, has_branches
from tilewright.compiler.normal.types import fill_shapes, fill_types
from tilewright.compiler.normal.values import is_of_levels

__all__ = ["FORMS", "RULES", "SHAPED_RULES", "NormalForm", "normalise", "without_integer_operators"]

FORMS: tuple[Rule, ...] = (FUSED, RECURRENT, ATTENTION, EINSUM, TURNED_PRODUCTS, STACKED)
"""Rules of float models too, before those are quantised."""

RULES: tuple[Rule, ...] = (BRANCHES, DOMAINS, LAYOUTS, *FORMS, IMAGES, EXPAND, SPELLED_OUT, BOUNDS, IDLE, SIGNS, PLAIN,
                           CONSTANTS, WEIGHT_LEVELS, BLOCKS, GAINS, MASKS, PARTS, VOLUMES, FAR_TAPS,
                           PIXEL_PRODUCTS, CHANNELS, OFFSETS, FACTORS, HALVES, BIASES, JOINED, PADDING, WHOLE, SHUFFLES,
                           TURNS, FUNCTIONS, STORAGE, NARROW, MIRRORED, PAIRS, ROUND_TRIPS, EARLIER, INSIDE)
"""In this order, again and again: what makes Q and DQ plain comes before what compares them, and one Q goes before a
move before another goes inside it."""

SHAPED_RULES: tuple[Rule, ...] = (REPEATS, PIXELS)
"""Rules of the compiler alone, applied once, to float models too, when shapes are known."""

_UNPACKED = (ir.DataType.FLOAT, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32)
_SMALL = 2**12

_MOST_ROUNDS = 64
_OTHER_FORMS = ("Attention", "BiasGelu", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "Einsum", "FastGelu",
                "FusedConv", "FusedGemm", "FusedMatMul", "MatMulIntegerToFloat", "Mean", "ReduceSum",
                "SkipLayerNormalization", "Sum")
_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "Round")


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A model in normal form, how often each rule that was needed has changed it, and sentences for the user."""

    proto: onnx.ModelProto
    counts: Mapping[str, int]
    notes: tuple[str, ...]


def normalise(proto: onnx.ModelProto) -> NormalForm:
    """Return a model in normal form; the model itself, if it is in normal form.

    Of one without quantisation only operators that others define are taken apart, and products turned.

    Raises
    ------
    BadModelError
        If onnx-ir cannot read it.
    """
    if not any(node.op_type in _QUANTISED or is_of_levels(node) for node in _nodes(proto.graph)):
        return _rewritten(proto, FORMS) if _has_other_forms(proto.graph) else NormalForm(proto, {}, ())
    return _rewritten(proto, RULES)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph and of the branches in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _has_other_forms(graph: onnx.GraphProto) -> bool:
    """Tell whether one of ``FORMS`` may change a graph."""
    constants = {tensor.name for tensor in graph.initializer} | {
        name for node in graph.node if node.op_type == "Constant" for name in node.output}
    return any(node.op_type in _OTHER_FORMS or (node.op_type == "MatMul" and node.input[0] in constants)
               or (node.op_type == "Gemm" and any(each.name == "transA" and each.i for each in node.attribute))
               for node in graph.node)


def without_integer_operators(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in normal form as the compiler reads it: operators of integers are such between DQ and Q.

    The reference runs them as they are. Products of two computed tensors stay.

    Raises
    ------
    BadModelError
        If onnx-ir cannot read it.
    """
    if not any(map(is_of_levels, proto.graph.node)):
        return proto
    return _rewritten(proto, tuple(EXPAND_ALL if rule is EXPAND else rule for rule in RULES)).proto


def _rewritten(proto: onnx.ModelProto, rules: tuple[Rule, ...]) -> NormalForm:
    try:
        model = ir.from_proto(proto)
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
        _unpack(model.graph)
        if has_branches(model.graph):
            fill_shapes(model)
        edit = Edit(model.graph)
        counts = _applied(edit, rules)
        if fill_shapes(model):
            counts = Counter(counts) + Counter(_applied(edit, rules))
        if not counts:
            return NormalForm(proto, {}, ())
        edit.drop_unread()
        made = ir.to_proto(model)
    except (ir.serde.SerdeError, ir.passes.PassError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        cause = error.__cause__ or error    # onnx-ir says only where it was, and its cause what is wrong.
        text = next((line.strip() for line in str(cause).splitlines() if line.strip()), type(cause).__name__)
        raise BadModelError(f"Model must be valid ONNX; the reader says: {text}") from error
    del made.graph.value_info[:]
    return NormalForm(made, counts, tuple(edit.notes))


def _unpack(graph: ir.Graph) -> None:
    """Hold small constants as arrays, in place: rules look at scales and zero points again and again."""
    for value in graph.initializers.values():
        held = value.const_value
        if held is not None and held.dtype in _UNPACKED and held.size <= _SMALL:
            value.const_value = ir.Tensor(held.numpy(), dtype=held.dtype, name=value.name)


def _applied(edit: Edit, rules: tuple[Rule, ...]) -> dict[str, int]:
    """Apply the rules until none changes anything; return how often each did."""
    counts: dict[str, int] = {}
    for _ in range(_MOST_ROUNDS):
        changed = False
        fill_types(edit.graph)
        for rule in rules:
            if found := rule.apply(edit):
                counts[rule.name] = counts.get(rule.name, 0) + found
                changed = True
        if not changed:
            break
        edit.drop_unread()
    return counts
