"""Post-training quantisation: from a float model and samples to the int8 model of ONNX Runtime's quantiser.

Activations are symmetric int8 with a scale per tensor, weights symmetric int8 with a scale per output channel, as Q/DQ
nodes: the form that the datapath computes exactly. The result is kept in the cache under a hash of model and samples,
beside the float model that it was made of, and says in its metadata what its ranges are from.
"""

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tilewright.errors import InputError
from tilewright.runtime.oracle.inputs import ONNX_TYPES, NodeArg
from tilewright.runtime.quantise import float_graph, mixed_graph, normalisations, vector_normalisations
from tilewright.runtime.quantise import samples as calibration_module
from tilewright.runtime.quantise.mixed_graph import behind_dequantisation, clear_repeats, kept_nodes
from tilewright.runtime.quantise.quantised_model import METADATA_KEY, Quantised, quantised_files
from tilewright.runtime.quantise.samples import Calibration, noise, read_calibration, read_limited
from tilewright.tools.files import reason, write_arrays
from tilewright.tools.progress import Steps

__all__ = ["quantise"]

_OPERATORS = (
    "Add", "AveragePool", "Clip", "Concat", "Conv", "ConvTranspose", "Flatten", "Gemm", "GlobalAveragePool",
    "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LeakyRelu", "MatMul", "Max", "MaxPool", "Mul",
    "Pad", "ReduceMax", "ReduceMean", "ReduceSum", "Relu", "Reshape", "Resize", "Sigmoid", "Slice", "Split", "Squeeze",
    "Sub", "Transpose", "Unsqueeze",
)
"""Operators to quantise. Softmax is not one: of its values between 0 and 1 an int8 scale leaves 127. Other operators
are computed in float between integer ones, and where they have one input they become a table of 256 values."""

_MOST_NODES = 4_000
"""Operators to quantise at most. ONNX Runtime's quantiser searches all nodes for each: on one processor it takes 5 s
for 1,000, two minutes for 4,000, and an hour for 20,000."""

_KEPT_SAMPLES = 32
_TOLERANCE = 1e-3
_ROUNDED_TOLERANCE = 1e-2
"""Of means, in models that round inside."""

_PROVIDERS = ["CPUExecutionProvider"]


def quantise(model: Path, calibrate: Path | None, steps: Steps) -> Quantised:
    """Return ``model`` quantised with the samples of a file, or with noise without one; made now unless it is cached.

    Raises
    ------
    CompileError
        If the file is no valid model, or has dynamic dimensions besides the batch.
    InputError
        If the samples are not the model's, or ONNX Runtime cannot quantise it, or would take hours.
    """
    with steps.step(f"Preparing {model.name} for quantisation"):
        result = quantised_files(_key(model, calibrate), model.stem)
        if result.model.is_file():
            return result
        prepared = float_graph.prepare(model)
        _require_few(model.name, prepared)
        arguments = _arguments(prepared.SerializeToString())
        calibration = read_calibration(calibrate, arguments) if calibrate else noise(arguments)
    result.float_model.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(result.samples, {name: array[:_KEPT_SAMPLES] for name, array in calibration.arrays.items()})
    prepared.metadata_props.add(key=METADATA_KEY, value=calibration.ranges.to_text())
    kept = kept_nodes(prepared.graph)
    left = [*float_graph.behind_softmax(prepared), *behind_dequantisation(prepared.graph), *kept]
    with tempfile.TemporaryDirectory(dir=result.model.parent) as scratch:
        plain, made = Path(scratch, "float.onnx"), Path(scratch, "int8.onnx")
        plain.write_bytes(prepared.SerializeToString())
        del prepared  # it may be half a gigabyte
        _require_same(model, plain, next(calibration.feeds()), rounds=bool(kept))
        with steps.count(f"Quantising {model.name}", len(calibration)) as advance:
            _quantise(model.name, plain, made, _SampleReader(calibration, advance), left)
        clear_repeats(plain, made)
        os.replace(plain, result.float_model)
        os.replace(made, result.model)
    return result


def _key(model: Path, calibrate: Path | None) -> str:
    """Return a hash of all that a quantised model is made of."""
    made = hashlib.sha256(float_graph.read_model(model).SerializeToString(deterministic=True))
    if calibrate is not None:
        made.update(calibrate.name.encode())
        made.update(read_limited(calibrate))
    for module in (__file__, float_graph.__file__, mixed_graph.__file__, normalisations.__file__,
                   vector_normalisations.__file__, calibration_module.__file__):
        made.update(Path(module).read_bytes())
    made.update(onnxruntime.__version__.encode())
    return made.hexdigest()[:16]


def _quantise(name: str, plain: Path, target: Path, reader: CalibrationDataReader, left: list[str]) -> None:
    """Write the float model in ``plain`` as int8 to ``target``; nodes called ``left`` stay as they are."""
    with _quiet():
        try:
            quantize_static(
                plain, target, reader, quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QInt8, weight_type=QuantType.QInt8, op_types_to_quantize=list(_OPERATORS),
                nodes_to_exclude=left,
                extra_options={"ActivationSymmetric": True, "WeightSymmetric": True,
                               "ForceQuantizeNoInputCheck": True})
        except Exception as error:
            raise InputError(f"Model {name!r} cannot be quantised; ONNX Runtime's quantiser says: "
                             f"{reason(error)}; give --float to compute it in float32 on the core") from error


def _require_few(name: str, prepared: onnx.ModelProto) -> None:
    """Raise :exc:`InputError` for a model that has more to quantise than is done in minutes."""
    count = sum(node.op_type in _OPERATORS for node in prepared.graph.node)
    if count > _MOST_NODES:
        raise InputError(f"Model {name!r} must have at most {_MOST_NODES:,} operators to quantise, not {count:,}: ONNX "
                         "Runtime's quantiser takes a time that grows with their square; quantise it with another "
                         "tool, or give --float to compute it in float32 on the core")


def _silent() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return options


def _arguments(model: bytes) -> list[NodeArg]:
    inputs = onnxruntime.InferenceSession(model, _silent(), providers=_PROVIDERS).get_inputs()
    for each in inputs:
        if each.type not in ONNX_TYPES.values():
            raise InputError(f"Input {each.name!r} of a model to quantise must be one of {', '.join(ONNX_TYPES)}, not "
                             f"{each.type}")
    return [NodeArg(each.name, tuple(each.shape), each.type) for each in inputs]


def _require_same(model: Path, prepared: Path, feed: Mapping[str, np.ndarray], *, rounds: bool) -> None:
    """Raise :exc:`InputError` unless the prepared model computes what the original does, which may round inside."""
    results = []
    for file in (model, prepared):
        try:
            results.append(onnxruntime.InferenceSession(file, _silent(), providers=_PROVIDERS).run(None, dict(feed)))
        except Exception as error:
            raise InputError(f"Model {model.name!r} cannot be quantised, because ONNX Runtime cannot run it: "
                             f"{reason(error)}") from error
    for before, after in zip(*results, strict=True):
        if not np.isfinite(before).all():
            raise InputError(f"Model {model.name!r} cannot be quantised: for the first sample its results are not "
                             "finite; give real samples with --calibrate, or --float")
        scale = float(np.abs(before).max(initial=1e-9))
        apart = np.abs(before.astype(np.float64) - after)
        # Where the model rounds to few levels, a last digit may make one of them another.
        off = float(apart.mean() if rounds else apart.max(initial=0))
        if not off <= (_ROUNDED_TOLERANCE if rounds else _TOLERANCE) * scale:
            raise InputError(f"Model {model.name!r} cannot be quantised: preparing it for quantisation changes its "
                             "outputs by "
                             f"{off:.3g} of at most {scale:.3g}; give --float to compute it in float32 on the core")


class _SampleReader(CalibrationDataReader):
    """Hands the samples to ONNX Runtime one at a time."""

    def __init__(self, calibration: Calibration, advance: Callable[[], None]) -> None:
        self._rest, self._advance = calibration.feeds(), advance

    def get_next(self) -> dict[str, np.ndarray] | None:
        feed = next(self._rest, None)
        if feed is not None:
            self._advance()
        return feed


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the quantiser's remarks on its own working from standard error."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
