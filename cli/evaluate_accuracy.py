"""The command ``evaluate``: accuracy over a data set; see `runtime.accuracy.evaluation`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import (
    ClockText,
    CompilerOptions,
    ExtensionFile,
    JsonFile,
    MachineName,
    MemoryText,
    Model,
    QuantiseOptions,
    design_named,
    with_groups,
    write_json,
)
from tilewright.cli.options.refusals import FAILED
from tilewright.errors import InputError
from tilewright.isa.machine import DEFAULT_MACHINE
from tilewright.tools.files import require_place

if TYPE_CHECKING:
    from tilewright.runtime.accuracy.data_set import DataFiles
    from tilewright.runtime.model_source import ModelSource

__all__ = ["Answering", "Axes", "DataOptions", "WorkOptions", "evaluate", "register"]


class Answering(StrEnum):
    """Values of ``--engine``: those of `runtime.accuracy.answers.ValueEngine`, which takes time to import."""

    values = "values"
    fast = "fast"
    rtl = "rtl"


class Axes(StrEnum):
    """Values of ``--layout``: those of `runtime.accuracy.data_set.ImageAxes`."""

    model = "model"
    nhwc = "nhwc"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """The data set, and the model's outputs that are compared with it."""

    input_file: Annotated[Path | None, typer.Option(
        "--input", metavar="FILE", show_default=False,
        help="Images: .npz with one array per input, whose first axis counts images, or .npy for a single input. The "
             "default is the digits that come with a built-in model.")] = None
    labels: Annotated[Path | None, typer.Option(
        "--labels", metavar="FILE", show_default=False,
        help="Correct class of each image, as .npy. The default "
             "is the array 'labels' of --input, if it has one.")] = None
    layout: Annotated[Axes, typer.Option(
        "--layout", help="Order of the axes of the stored images: the model's, or channels last.")] = Axes.model
    output: Annotated[str | None, typer.Option(
        "--output", metavar="NAME", show_default=False,
        help="The output that holds the scores of the classes; the default is the first.")] = None
    limit: Annotated[int | None, typer.Option(
        "--limit", metavar="N", show_default=False, help="Evaluate only the first N images.")] = None

    def files(self, source: "ModelSource") -> "DataFiles":
        """Return the files of the data set, or those that come with a built-in model."""
        from tilewright.runtime.accuracy.data_set import DataFiles, ImageAxes
        from tilewright.runtime.accuracy.evaluation import default_files

        if self.input_file is not None:
            return DataFiles(images=self.input_file, labels=self.labels, layout=ImageAxes(self.layout.value))
        if self.labels is not None:
            raise InputError("Option --labels needs --input, the images that the labels belong to")
        return default_files(source)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """Options of the evaluation itself: engine, processes, repetition."""

    engine: Annotated[Answering, typer.Option(
        "--engine", help="How the hardware's scores are computed: only their values, or by executing the program, with "
                         "cycles.",
    )] = Answering.values
    machine: MachineName = DEFAULT_MACHINE
    extension: ExtensionFile = None
    memory: MemoryText = None
    clock: ClockText = None
    float_model: Annotated[Path | None, typer.Option(
        "--float-model", metavar="FILE", show_default=False,
        help="The float model that a quantised MODEL was made from, for comparison.")] = None
    jobs: Annotated[int | None, typer.Option(
        "--jobs", metavar="N", show_default=False, help="Number of processes; the "
                                                        "default is one per processor.")] = None
    fresh: Annotated[bool, typer.Option(
        "--fresh", help="Evaluate all images again, including those that an earlier evaluation has finished.")] = False


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright evaluate net.onnx --calibrate samples.npz --input images.npz "
                       "--labels labels.npy")(evaluate)


@with_groups
def evaluate(model: Model, data: DataOptions, work: WorkOptions, compiler: CompilerOptions, quantise: QuantiseOptions,
             json_file: JsonFile = None) -> None:
    """Measure MODEL's accuracy over a data set: float, quantised and in hardware, with the images on which they differ.

    Answers are saved as they come, so an interrupted evaluation continues where it was. The exit status is 1 if the
    hardware's scores differ from ONNX Runtime's.
    """
    design = design_named(work.machine, memory=work.memory, clock=work.clock, extension=work.extension)
    require_place(json_file, read=(model, quantise.calibrate, data.input_file, data.labels, work.float_model))
    source = quantise.model(model)
    from tilewright.cli.tables.accuracy_tables import print_accuracy
    from tilewright.cli.tables.text import console
    from tilewright.runtime.accuracy.answers import ValueEngine
    from tilewright.runtime.accuracy.evaluation import EvaluationRequest, default_jobs
    from tilewright.runtime.accuracy.evaluation import evaluate as evaluate_model
    from tilewright.tools.progress import Steps

    if work.float_model is not None and source.quantised is not None:
        raise InputError(f"Option --float-model needs a quantised MODEL, and {model} is a float model")
    request = EvaluationRequest(
        files=data.files(source), design=design, engine=ValueEngine(work.engine.value), options=compiler.options(),
        float_model=work.float_model, output=data.output, limit=data.limit,
        jobs=default_jobs() if work.jobs is None else work.jobs, fresh=work.fresh)
    report = evaluate_model(source, request, Steps())
    print_accuracy(report, console())
    if json_file is not None:
        write_json(json_file, report.to_json())
    if report.matches is False:
        raise typer.Exit(FAILED)
