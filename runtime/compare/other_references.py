"""``tilewright compare --reference default|unfused|litert|…``: our values beside another engine's of the user's file.

What we equal of ONNX are ONNX Runtime's integer kernels, which a plain session does not always use; of TensorFlow Lite
it is LiteRT's default session. This shows how far the two are apart, output by output, and which operator starts it:
the first layer that is off while all before it that are visible are equal.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.compiler.network.layers import AnyLayer
from tilewright.compiler.network.memory_map import words_of
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.tflite.mark import EngineName
from tilewright.errors import InputError
from tilewright.runtime.compared_run import Expected, model_outputs, public_outputs
from tilewright.runtime.execution.verdict import Judged, TensorVerdict, counts
from tilewright.runtime.model_source import ModelSource, choose_inputs
from tilewright.runtime.oracle import onnx_runtime as onnx_reference
from tilewright.runtime.oracle.comparison import Comparison, compare, compare_outputs
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.expected_tensors import with_parts
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.litert_sessions import LITERT_SETTINGS, LitertSession
from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS
from tilewright.runtime.oracle.plain_sessions import SETTINGS, PlainName, PlainSession
from tilewright.tools.files import reason
from tilewright.tools.progress import Steps

__all__ = ["ReferenceComparison", "Start", "compare_reference"]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a difference starts: a layer by number and name, its operators, and how far it is off.

    ``unseen`` is the number of layers right before it that the engine does not show: it may start in one of these.
    """

    layer: int
    name: str
    operators: tuple[str, ...]
    nodes: tuple[str, ...]
    verdict: TensorVerdict
    unseen: int = 0
    engine: str = "ONNX Runtime"

    def __str__(self) -> str:
        made = ", ".join(self.operators) or "no operator of the file"
        nodes = f" ({', '.join(self.nodes)})" if self.nodes else ""
        unseen = "" if not self.unseen else (
            f", or in {'the layer' if self.unseen == 1 else f'one of the {self.unseen} layers'} before it that "
            f"{self.engine} does not show")
        return f"the difference starts at layer {self.layer} ({self.name}), {made}{nodes}{unseen}: {self.verdict}"

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the JSON."""
        return {"layer": self.layer, "name": self.name, "operators": list(self.operators), "nodes": list(self.nodes),
                "unseen": self.unseen, **self.verdict.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceComparison:
    """Our values beside another reference: for information, as that is not what we equal.

    Attributes
    ----------
    model, origin : str
        ``origin`` is the source of the input.
    reference : str
        One of `PlainName` or `EngineName`.
    engine, version, settings : str
        What computed the other values, and how.
    layers, outputs : tuple of Judged
    start : Start or None
        None if nothing that is visible is off.
    """

    model: str
    origin: str
    reference: PlainName | EngineName
    layers: tuple[Judged, ...]
    outputs: tuple[Judged, ...]
    start: Start | None
    engine: str = "ONNX Runtime"
    version: str = onnx_reference.VERSION
    settings: str = ""

    @property
    def verdicts(self) -> list[TensorVerdict]:
        """Those of the layers."""
        return [each.verdict for each in self.layers]

    @property
    def output_verdicts(self) -> list[TensorVerdict]:
        """Those of the model's outputs."""
        return [each.verdict for each in self.outputs]

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return {
            "model": self.model, "input": self.origin, "reference": self.reference,
            self.engine.lower().replace(" ", ""): {"version": self.version, "settings": self.settings},
            "compared": {"layers": counts(self.verdicts), "outputs": counts(self.output_verdicts)},
            "outputs": [each.to_json() for each in self.outputs],
            "layers": [each.to_json() for each in self.layers],
            "start": self.start and self.start.to_json(),
        }


def compare_reference(source: ModelSource, reference: PlainName | EngineName, input_file: Path | None, *,
                      steps: Steps) -> ReferenceComparison:
    """Compute a model by the integer reference, and compare it with another engine's values of the user's file.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the input file does not hold the model's inputs, the engine refuses the file or is not installed, or the file
        is not in its format.
    """
    with steps.step(f"Reading {source.path.name}"):
        network = compile_network(source.path)
    inputs = choose_inputs(network.inputs, source, input_file)
    with steps.step("Running the integer reference"):
        ours = run_network(network, {info.name: quantise_input(info, inputs.arrays[node_arg(info).name])
                                     for info in network.inputs})
    other = _Other.of(source, reference, network.tensors)
    with steps.step(f"Running {other.engine}, {reference}"):
        theirs = other.run(inputs.arrays)
    layers = [(layer.name, words_of(layer.writes[0], network.tensors)) for layer in network.layers]
    found = compare(layers, ours, {name: array for name, array in with_parts(theirs, network.tensors).items()
                                   if name in ours and _alike(array, ours[name])})
    public = {node_arg(info).name: dequantise_output(info, ours[info.name]) for info in network.outputs}
    found = compare_outputs(model_outputs(network.outputs, public, ()), public_outputs(public, [Expected(theirs)]),
                            found)
    return ReferenceComparison(model=source.path.stem, origin=inputs.origin, reference=reference,
                               layers=found.of_layers, outputs=found.of_outputs,
                               start=_start(network.layers, found, other), engine=other.engine, version=other.version,
                               settings=other.settings)


@dataclass(frozen=True, slots=True)
class _Other:
    """Another engine with the user's file: how it is run, and the operator of each node."""

    engine: str
    version: str
    settings: str
    operators: Mapping[str, str]
    run: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]

    @classmethod
    def of(cls, source: ModelSource, reference: PlainName | EngineName, wanted: Collection[str]) -> "_Other":
        """Return the engine of a reference with the file of ``source``."""
        if reference == "litert" or reference == "litert-reference" or reference == "tflm":
            if source.foreign is None:
                raise InputError(f"Option --reference {reference} needs a .tflite file that is quantised, and "
                                 f"{source.own_file.name} is none; of ONNX there are integer, default and unfused")
            session = LitertSession(source.foreign, reference, source.path)
            engine = "TensorFlow Lite Micro" if reference == "tflm" else "LiteRT"
            return cls(engine, session.version, LITERT_SETTINGS[reference], session.operators, session.run)
        try:
            plain = PlainSession(source.own_file, reference, wanted)
        except ONNX_RUNTIME_ERRORS as error:
            raise _refused(source, reference, error) from error

        def run(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            try:
                return plain.run(inputs)
            except ONNX_RUNTIME_ERRORS as error:
                raise _refused(source, reference, error) from error

        return cls("ONNX Runtime", onnx_reference.VERSION, SETTINGS[reference], plain.operators, run)


def _refused(source: ModelSource, reference: str, error: Exception) -> InputError:
    return InputError(f"Model {source.own_file.name!r} cannot be compared with --reference {reference}, because ONNX "
                      f"Runtime rejects it: {reason(error)}")


def _start(layers: Sequence[AnyLayer], found: Comparison, other: _Other) -> Start | None:
    """Return the first layer that is off by more than the last digits of a float; of such, if there is none."""
    for kind in ("differs", "declared"):
        for number, (layer, judged) in enumerate(zip(layers, found.of_layers, strict=True)):
            if judged.verdict.kind == kind:
                names = tuple(dict.fromkeys(other.operators[node] for node in layer.onnx_nodes
                                            if node in other.operators))
                before = [each.verdict.kind != "not compared" for each in found.of_layers[:number]][::-1]
                unseen = before.index(True) if True in before else len(before)
                return Start(number, layer.name, names, layer.onnx_nodes, judged.verdict, unseen, other.engine)
    return None


def _alike(theirs: np.ndarray, ours: np.ndarray) -> bool:
    """Tell whether a tensor of one name is one in both: of the same size, and integers or floats in both."""
    return theirs.size == ours.size and (theirs.dtype.kind in "iu") == (ours.dtype.kind in "iu")
