"""Post-training quantisation: from a float model and samples to the int8 model of ONNX Runtime's quantiser.

Activations are symmetric int8 with a scale per tensor, weights symmetric int8 with a scale per output channel, as Q/DQ
nodes: the form that the datapath computes exactly. The result is kept in the cache under a hash of model and samples,
beside the float model that it was made of, and says in its metadata what its ranges are from.
"""

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from tilewright.compiler.onnx.given_shapes import proposed_values
from tilewright.errors import InputError
from tilewright.models import static_quantiser
from tilewright.models.static_quantiser import SampleReader
from tilewright.runtime.oracle.inputs import ONNX_TYPES, NodeArg
from tilewright.runtime.quantise import (
    biased_products,
    float_graph,
    float_regions,
    masked_scores,
    normalisations,
    own_biases,
    product_scales,
    second_quantisation,
    softmax_levels,
    step_ranges,
    whole_numbers,
)
from tilewright.runtime.quantise import samples as calibration_module
from tilewright.runtime.quantise.float_regions import OPERATORS
from tilewright.runtime.quantise.quantised_model import METADATA_KEY, Quantised, quantised_files
from tilewright.runtime.quantise.samples import noise, read_calibration, read_limited
from tilewright.runtime.quantise.second_quantisation import SecondQuantisation
from tilewright.runtime.quantise.step_ranges import shared_ranges
from tilewright.runtime.quantise.whole_numbers import table_ranges, whole_bounds
from tilewright.tools.files import reason, write_arrays, write_file
from tilewright.tools.progress import Steps

__all__ = ["quantise"]

_MOST_NODES = 4_000
"""Operators to quantise at most. ONNX Runtime's quantiser searches all nodes for each: on one processor it takes 5 s
for 1,000, two minutes for 4,000, and an hour for 20,000."""

_KEPT_SAMPLES = 32
_TOLERANCE = 1e-3
_ROUNDED_TOLERANCE = 1e-2
"""Of means, in models that round inside."""

_PROVIDERS = ["CPUExecutionProvider"]


def quantise(read: onnx.ModelProto, file: Path, calibrate: Path | None, steps: Steps) -> Quantised:
    """Return a model quantised with the samples of a file, or with noise without one; made now unless it is cached.

    Parameters
    ----------
    read : ModelProto
        As `compiler.onnx.reader.read_model` returns it; its batch is fixed, in place.
    file : Path
        Where it was read, for its name.
    calibrate : Path, optional
        The samples.

    Raises
    ------
    CompileError
        If the model has dynamic dimensions besides the batch.
    InputError
        If the samples are not the model's, or ONNX Runtime cannot quantise it, or would take hours.
    """
    with steps.step(f"Preparing {file.name} for quantisation"):
        result = quantised_files(_key(read, calibrate), file.stem)
        if result.model.is_file():
            return result
        prepared = float_graph.prepare(read)
        _require_few(file.name, prepared.proto)
        arguments = _arguments(file.name, prepared.proto.SerializeToString())
        unread = {each.name for each in arguments} - {name for node in prepared.proto.graph.node for name in node.input}
        calibration = read_calibration(calibrate, arguments, unread) if calibrate else \
            noise(arguments, unread, whole_bounds(prepared.proto), proposed_values(prepared.proto))
        masks = masked_scores.bound_masks(prepared.proto, calibration.feeds())
        origin = replace(calibration.ranges, remarks=calibration.ranges.remarks + prepared.remarks).to_text()
        prepared.proto.metadata_props.add(key=METADATA_KEY, value=origin)
        second = SecondQuantisation.of(prepared.proto, prepared.weights)
        content = prepared.proto.SerializeToString()
        _require_same(file.name, read, content, next(calibration.feeds()), rounds=bool(second.kept))
        attention = float_graph.attention_weights(second.proto)
        given = softmax_levels.softmax_levels(second.proto, attention, calibration.feeds()) | shared_ranges(
            second.proto, calibration.feeds()) | table_ranges(second.proto) | masks | second.overrides
    result.float_model.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(result.samples, {name: array[:_KEPT_SAMPLES] for name, array in calibration.arrays.items()})
    write_file(result.origin, origin.encode())
    left = [*float_graph.behind_softmax(second.proto),
            *(node.name for node in normalisations.inside_groups(second.proto)), *second.kept]
    with tempfile.TemporaryDirectory(dir=result.model.parent) as scratch:
        plain, apart, made = (Path(scratch, f"{name}.onnx") for name in ("float", "given", "int8"))
        plain.write_bytes(content)
        if second.kept:
            apart.write_bytes(second.proto.SerializeToString())
        del content, prepared  # it may be half a gigabyte
        second.proto.Clear()
        with steps.count(f"Quantising {file.name}", len(calibration)) as advance:
            reader = SampleReader(calibration.feeds(), advance)
            _quantise(file.name, apart if second.kept else plain, made, reader, left, given)
        if second.kept:
            onnx.save(second.joined(onnx.load(made)), made)
        os.replace(plain, result.float_model)
        os.replace(made, result.model)
    return result


def _key(read: onnx.ModelProto, calibrate: Path | None) -> str:
    """Return a hash of all that a quantised model is made of."""
    made = hashlib.sha256(read.SerializeToString(deterministic=True))
    if calibrate is not None:
        made.update(calibrate.name.encode())
        made.update(read_limited(calibrate))
    for module in (__file__, biased_products.__file__, float_graph.__file__, float_regions.__file__,
                   masked_scores.__file__, normalisations.__file__, own_biases.__file__, second_quantisation.__file__,
                   softmax_levels.__file__, step_ranges.__file__, product_scales.__file__,
                   whole_numbers.__file__, calibration_module.__file__, static_quantiser.__file__):
        made.update(Path(module).read_bytes())
    made.update(onnxruntime.__version__.encode())
    return made.hexdigest()[:16]


def _quantise(name: str, plain: Path, target: Path, reader: SampleReader, left: list[str],
              given: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    """Write the float model in ``plain`` as int8 to ``target``; nodes called ``left`` stay as they are."""
    with _quiet():
        try:
            static_quantiser.quantise_file(plain, target, reader, operators=OPERATORS, left=left, given=given)
        except Exception as error:
            raise InputError(f"Model {name!r} cannot be quantised; ONNX Runtime's quantiser says: "
                             f"{reason(error)}; give --float to compute it in float32 on the core") from error


def _require_few(name: str, prepared: onnx.ModelProto) -> None:
    """Raise :exc:`InputError` for a model that has more to quantise than is done in minutes."""
    count = sum(node.op_type in OPERATORS for node in prepared.graph.node)
    if count > _MOST_NODES:
        raise InputError(f"Model {name!r} must have at most {_MOST_NODES:,} operators to quantise, not {count:,}: ONNX "
                         "Runtime's quantiser takes a time that grows with their square; where its length is open, "
                         "give a shorter one with --shape, quantise it with another tool, or give --float to "
                         "compute it in float32 on the core")


def _silent() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return options


def _arguments(name: str, model: bytes) -> list[NodeArg]:
    try:
        inputs = onnxruntime.InferenceSession(model, _silent(), providers=_PROVIDERS).get_inputs()
    except Exception as error:
        raise _not_run(name, error) from error
    for each in inputs:
        if each.type not in ONNX_TYPES.values():
            raise InputError(f"Input {each.name!r} of a model to quantise must be one of {', '.join(ONNX_TYPES)}, not "
                             f"{each.type}")
    return [NodeArg(each.name, tuple(each.shape), each.type) for each in inputs]


def _not_run(name: str, error: Exception) -> InputError:
    return InputError(f"Model {name!r} cannot be quantised, because ONNX Runtime cannot run it: {reason(error)}")


def _require_same(name: str, read: onnx.ModelProto, prepared: bytes, feed: Mapping[str, np.ndarray], *,
                  rounds: bool) -> None:
    """Raise :exc:`InputError` unless the prepared model computes what the one read does, which may round inside."""
    results = []
    for content in (read.SerializeToString(), prepared):
        try:
            results.append(onnxruntime.InferenceSession(content, _silent(), providers=_PROVIDERS).run(None, dict(feed)))
        except Exception as error:
            raise _not_run(name, error) from error
    for before, after in zip(*results, strict=True):
        if not np.isfinite(before).all():
            raise InputError(f"Model {name!r} cannot be quantised: for the first sample its results are not "
                             "finite; give real samples with --calibrate, or --float")
        scale = float(np.abs(before).max(initial=1e-9))
        apart = np.abs(before.astype(np.float64) - after)
        # Where the model rounds to few levels, a last digit may make one of them another.
        off = float(apart.mean() if rounds else apart.max(initial=0))
        if not off <= (_ROUNDED_TOLERANCE if rounds else _TOLERANCE) * scale:
            raise InputError(f"Model {name!r} cannot be quantised: preparing it for quantisation changes its "
                             "outputs by "
                             f"{off:.3g} of at most {scale:.3g}; give --float to compute it in float32 on the core")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the quantiser's remarks on its own working from standard error."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
