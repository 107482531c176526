"""A user's request for a front of bits, read and checked: the network, what it is compared with, and the machines."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.bench.exploration.design_limits import limit_of
from tilewright.bench.exploration.request import ExplorationRequest, setup_of, weighted
from tilewright.bench.precision.bits_cost import MEASURES
from tilewright.bench.precision.bits_judge import BitsJudge, answers_of
from tilewright.bench.precision.front_files import FrontReport
from tilewright.bench.precision.precision_front import designs_of, precision_front
from tilewright.errors import InputError
from tilewright.runtime.accuracy.data_set import LABELS, DataFiles, DataSet, read_data_set
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.runtime.oracle.inputs import UNREADABLE, read_arrays
from tilewright.runtime.precision.quantised_file import BitsModel, bits_model, input_arguments, is_quantised
from tilewright.runtime.quantise.samples import SamplesError
from tilewright.tools.files import reason, write_arrays
from tilewright.tools.progress import Steps

__all__ = ["MOST_MACHINES", "PrecisionRequest", "explore_bits"]

MOST_MACHINES = 12
"""Machines of a space, at most, besides the one that it starts from."""

_CALIBRATION, _MODELS = "calibration.npz", "models"
_CALIBRATED = 100
_MOST_CLASSES = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRequest:
    """A search for bits of layers, as the command line asks for it.

    Attributes
    ----------
    exploration : ExplorationRequest
        Of one model; its objectives are not used.
    data : DataFiles
    output : Path
    trials, jobs : int
    command : str
    run : tuple of str
        Options that a run of a row takes.
    """

    exploration: ExplorationRequest
    data: DataFiles
    output: Path
    trials: int
    jobs: int
    command: str
    run: tuple[str, ...]


def explore_bits(request: PrecisionRequest, steps: Steps) -> FrontReport:
    """Return the front of a network's bits on machines; its files are written.

    Raises
    ------
    InputError
        If a part of the request cannot be used.
    CompileError
        If the network cannot be compiled.
    """
    asked = request.exploration
    if len(asked.models) != 1:
        raise InputError(f"Option --accuracy must have one MODEL, not {len(asked.models)}")
    name, weight = weighted(asked.models[0])
    if weight != 1:
        raise InputError(f"Option --accuracy must have a MODEL without a weight, not {asked.models[0]!r}")
    limits = asked.limits
    setup, _ = setup_of(ExplorationRequest(
        models=(name,), space=asked.space, target=asked.target, technology=asked.technology, seed=asked.seed,
        memory=asked.memory, clock=asked.clock, compilation=asked.compilation))
    known = tuple(limit_of(text, (*MEASURES, *AreaTarget(setup.target).measures)) for text in dict.fromkeys(limits))
    designs = designs_of(setup.space, min(request.trials, MOST_MACHINES) if asked.space else 0, asked.seed)
    (request.output / _MODELS).mkdir(parents=True, exist_ok=True)
    source, model, quantise = _model(request, name, steps)
    judge, notes = _judge(request, source, model)
    front = precision_front(judge, designs, setup.target, request.output / _MODELS, outputs_only=asked.compilation
                            .outputs_only, jobs=request.jobs, steps=steps)
    report = FrontReport(front=front, model=name, quantise=quantise, run=request.run, base=setup.space.base,
                         command=request.command, target=setup.target, limits=known, notes=(*source.notes, *notes))
    if not report.points:
        raise InputError(f"No choice of bits is within the limits {', '.join(map(str, known))}")
    report.write(request.output)
    return report


def _model(request: PrecisionRequest, name: str, steps: Steps) -> tuple[ModelSource, BitsModel, tuple[str, ...]]:
    """Return a network with 8 bits, and the options that quantise it so; the first images are samples if none are."""
    how = request.exploration.compilation
    if how.keep_float:
        raise InputError("Option --float excludes --accuracy, which quantises the model; leave it out")
    calibrate = how.calibrate
    if calibrate is None:
        calibrate = request.output / _CALIBRATION
        write_arrays(calibrate, _first(request.data.images))
    ready = is_quantised(name)
    try:
        source = find_model(name, steps, calibrate=None if ready else calibrate, shapes=how.shapes, values=how.values)
    except SamplesError as error:
        if how.calibrate is not None:
            raise
        # The user knows the images, and not the copy of the first of them.
        text = error.sentence.replace(repr(str(calibrate)), repr(str(request.data.images)))
        raise InputError(f"Images {str(request.data.images)!r} must be the model's inputs: {text}") from error
    with steps.step(f"Reading the layers of {name}"):
        model = bits_model(source, calibrate if ready else None)
    options = ["--calibrate", str(calibrate)]
    for option, given in (("--shape", how.shapes), ("--input-value", how.values)):
        for each, numbers in given.items():
            options += [option, f"{each}={','.join(map(str, numbers))}"]
    return source, model, tuple(options)


def _first(images: Path) -> dict[str, np.ndarray]:
    try:
        arrays = read_arrays(images)
    except UNREADABLE as error:
        raise InputError(f"Images {str(images)!r} cannot be read: {reason(error)}") from error
    return {name: array[:_CALIBRATED] for name, array in arrays.items() if name != LABELS or len(arrays) == 1}


def _judge(request: PrecisionRequest, source: ModelSource, model: BitsModel) -> tuple[BitsJudge, list[str]]:
    """Return what says how much accuracy a choice costs, and what it compares with."""
    data = read_data_set(request.data, input_arguments(model.model), _MOST_CLASSES)
    feeds = [data.feed(index) for index in range(len(data))]
    original = source.quantised
    expected = answers_of(model.model if original is None else onnx.load(original.float_model), feeds)
    labels = _labels(data, expected.shape[1])
    beside = "the model with 8 bits, which is quantised already" if original is None else "the float model"
    if labels is None:
        note = (f"error: distance of the outputs from those of {beside}, over {len(feeds)} images; give --labels to "
                "count wrong answers")
        return BitsJudge(model, feeds, expected, None), [note]
    wrong = 100 * float((expected.argmax(axis=1) != labels).mean())
    return BitsJudge(model, feeds, expected, labels), [
        f"error: wrong answers over {len(feeds)} images, of which {beside} has {wrong:.3g} %"]


def _labels(data: DataSet, classes: int) -> np.ndarray | None:
    if data.labels is not None and int(data.labels.max(initial=0)) >= classes:
        raise InputError(f"Labels must be of 0 to {classes - 1}, the classes of the model's output, not "
                         f"{int(data.labels.max())}")
    return data.labels
