"""ONNX's official backend tests, and which of them are for us: by operator, by type, and by the list of exclusions."""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
from onnx import AttributeProto, TensorProto, helper
from onnx.backend.test.loader import load_model_tests

from tests.onnx_backend.exclusions import EXCLUSIONS
from tilewright.backend import Backend
from tilewright.compiler.graph.onnx_names import RECOGNISED
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.onnx.cleaning import expand_functions
from tilewright.isa.program import DTYPES

FOLDED = frozenset({"Constant", "ConstantOfShape", "Mod", "Range", "Shape", "Size"})
"""Operators that the front end computes while compiling, as all shapes are known."""

OPERATORS = RECOGNISED | KERNELS.keys() | FOLDED
"""Operators that are ours."""

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""Those of ONNX's tests that are in its package; "real" are whole networks, see
tests/runtime/quantise/test_light_models.py."""

DEVICE = "cpu"


@dataclass(frozen=True, slots=True)
class Case:
    """A test of ONNX.

    Attributes
    ----------
    name : str
        Without the device.
    operators : frozenset of str
        All in it.
    reason : str or None
        Why it is not for us, None if it is.
    detail : str
        The operators or types that make the reason; empty if it is of our own list.
    """

    name: str
    operators: frozenset[str]
    reason: str | None
    detail: str = ""

    @property
    def excluded(self) -> bool:
        """Whether the reason is of our own list."""
        return self.reason is not None and not self.detail


@cache
def cases() -> tuple[Case, ...]:
    """Return all tests."""
    # Inputs of some are made with infinities on purpose.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(_case(test.name, _model(test)) for kind in KINDS for test in load_model_tests(kind=kind))


def counts() -> Counter[str]:
    """Return how many tests are not for us, by reason."""
    return Counter(case.reason for case in cases() if case.reason is not None)


def official_tests(engine: str = "fast") -> "onnx.backend.test.BackendTest":
    """Return ONNX's own runner of them, on an engine."""
    class Chosen(Backend):
        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            return super().prepare(model, device, engine=engine, **kwargs)

        @classmethod
        def is_compatible(cls, model, device="CPU", **kwargs):
            # Otherwise tests of models that are refused would be passed over without a word.
            return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return onnx.backend.test.BackendTest(Chosen, __name__)


def classes_of(names: set[str], engine: str = "fast") -> dict[str, type]:
    """Return ONNX's unittest classes with only the tests of these names, without those for other devices."""
    found = official_tests(engine).test_cases
    for each in found.values():
        for attribute in [attribute for attribute in vars(each) if attribute.startswith("test_")]:
            if attribute.removesuffix(f"_{DEVICE}") not in names or not attribute.endswith(f"_{DEVICE}"):
                delattr(each, attribute)
    return {name: each for name, each in found.items() if any(key.startswith("test_") for key in vars(each))}


def _model(test: onnx.backend.test.case.test_case.TestCase) -> onnx.ModelProto:
    return test.model if test.model is not None else onnx.load(Path(test.model_dir) / "model.onnx")


def _case(name: str, model: onnx.ModelProto) -> Case:
    operators = frozenset(node.op_type for node in _nodes(model.graph))
    if operators - OPERATORS:
        model = expand_functions(model, OPERATORS - FOLDED)
    if unknown := {node.op_type for node in _nodes(model.graph)} - OPERATORS:
        return Case(name, operators, "no kernel; outside what CNNs use", ", ".join(sorted(unknown)))
    if types := _types(model) - DTYPES.keys():
        return Case(name, operators, "the host core has no numbers of the type", ", ".join(sorted(types)))
    return Case(name, operators, next((reason for reason, patterns in EXCLUSIONS.items()
                                       if any(re.search(pattern, name) for pattern in patterns)), None))


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _types(model: onnx.ModelProto) -> set[str]:
    """Return NumPy's names of the types of inputs, outputs and constants, and of what a Cast makes."""
    values = [value.type for value in (*model.graph.input, *model.graph.output)]
    found = {each.tensor_type.elem_type for each in values if each.HasField("tensor_type")}
    names = {"sequence, not tensor" for each in values if not each.HasField("tensor_type")}
    found |= {tensor.data_type for tensor in model.graph.initializer}
    for node in _nodes(model.graph):
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to":
                found.add(attribute.i)
            if attribute.type == AttributeProto.TENSOR:
                found.add(attribute.t.data_type)
    return names | {"string" if each == TensorProto.STRING else np.dtype(helper.tensor_dtype_to_np_dtype(each)).name
                    for each in found}
