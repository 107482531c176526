"""The command ``explore``: many designs predicted on several networks, and the front of them verified."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import (
    CompilerOptions,
    PredictionOptions,
    QuantiseOptions,
    TechnologyName,
    command_line,
    with_groups,
)
from tilewright.cli.options.input_texts import shapes_given, values_given
from tilewright.errors import InputError
from tilewright.models import NAMES

if TYPE_CHECKING:
    from tilewright.bench.exploration.design_cost import Evaluator
    from tilewright.bench.exploration.exploration_study import ExplorationStudy, FinishedTrial
    from tilewright.bench.exploration.local_workers import Workers
    from tilewright.bench.exploration.request import ExplorationRequest
    from tilewright.runtime.accuracy.data_set import DataFiles

__all__ = ["SearchOptions", "VerifyOptions", "WorkerOptions", "explore", "register"]

_MOST_TRIALS, _VERIFIED = 1_000_000, 3


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright explore lenet5_accel mlperf-resnet8=2 --objective cycles --objective area "
                       "--limit 'mult18<=156' --trials 300 -o out/explored")(explore)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Options that say where is looked for what, and how."""

    space: Annotated[Path | None, typer.Option(
        "--space", metavar="SPACE.toml", show_default="machines that an ECP5-85k may hold",
        help="File with the values that each parameter may take.")] = None
    technology: TechnologyName = None
    objective: Annotated[list[str] | None, typer.Option(
        "--objective", metavar="NAME", show_default="the space's, or cycles and area",
        help="Measure to minimise: cycles, time, energy, area or energy-delay; may be repeated.")] = None
    limit: Annotated[list[str] | None, typer.Option(
        "--limit", metavar="NAME<=N", show_default=False,
        help="Upper (<=) or lower (>=) limit on a measure, such as mult18<=156; may be repeated.")] = None
    trials: Annotated[int, typer.Option("--trials", min=1, max=_MOST_TRIALS, help="Total number of designs.")] = 300
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the sampler.")] = 0
    sampler: Annotated[str | None, typer.Option("--sampler", metavar="nsga2|tpe|gp|random|grid",
                                                show_default="nsga2", help="Optuna's sampler.")] = None
    target: Annotated[str, typer.Option("--target", metavar="NAME", show_default="the space's, or ecp5-85k",
                                        help="Target for which area is predicted and the front is synthesised.")] = ""
    accuracy: Annotated[Path | None, typer.Option(
        "--accuracy", metavar="IMAGES.npz", show_default=False,
        help="Search the bits of each layer's weights (2, 4, 8) and input (8, 16) instead, for the front of error, "
             "cycles, energy, bytes of weights and area; with --space on up to 12 of its machines, too.")] = None
    labels: Annotated[Path | None, typer.Option(
        "--labels", metavar="FILE", show_default=False,
        help="Correct class of each of these images; without, errors are distances from the float model's outputs.",
    )] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Who evaluates designs."""

    jobs: Annotated[int | None, typer.Option("--jobs", min=1, max=1024, show_default="one a processor",
                                             help="Number of processes on this machine.")] = None
    ray: Annotated[str | None, typer.Option(
        "--ray", metavar="auto|local|ADDRESS", show_default=False,
        help="Evaluate on a Ray cluster instead: a running one (auto), one started on this machine (local), or the one "
             "at an address.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The extent to which the front is measured."""

    verify: Annotated[int | None, typer.Option("--verify", metavar="K", min=1, show_default="3",
                                               help="Maximum number of points of the front "
                                                    "to run in RTL and to synthesise.")] = None
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Do not measure points of the front; report "
                                                                "predictions only.")] = False

    @property
    def most(self) -> int:
        """Points to measure."""
        return 0 if self.no_verify else self.verify or _VERIFIED


@with_groups
def explore(output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                                 help="Folder for trials and results. An interrupted exploration "
                                                      "continues there, and another process joins in.")],
            models: Annotated[list[str] | None, typer.Argument(
                metavar="MODEL[=WEIGHT]…", show_default="the space's",
                help=f".onnx files, or some of {', '.join(NAMES)}; a weight sets how much a model counts.")] = None,
            *, search: SearchOptions, workers: WorkerOptions, verification: VerifyOptions,
            prediction: PredictionOptions, compiler: CompilerOptions, quantise: QuantiseOptions) -> None:
    """Search a space of designs for the Pareto front of cycles, time, energy or area; or, with --accuracy, of bits.

    Cycles and energy are predicted without values, as run does with the same options, and area without synthesis; then
    points of the front are measured. Bits: tilewright explore net.onnx --accuracy images.npz --labels labels.npy -o out
    The folder holds trials.csv, front.json, explore.html, designs/*.toml, and Optuna's storage in study.journal.
    """
    if workers.ray is not None and workers.jobs is not None:
        raise InputError("Options --ray and --jobs exclude each other: a cluster knows its own processors")
    if search.labels is not None and search.accuracy is None:
        raise InputError("Option --labels needs --accuracy, the images that the labels belong to")
    from tilewright.bench.exploration.exploration_study import ExplorationStudy
    from tilewright.bench.exploration.request import Compilation, ExplorationRequest, evaluator_of, setup_of
    from tilewright.runtime.accuracy.data_set import DataFiles
    from tilewright.tools.progress import Steps

    compilation = Compilation(options=compiler.options(), outputs_only=prediction.outputs_only,
                              calibrate=quantise.calibrate, keep_float=quantise.keep_float,
                              shapes=shapes_given(quantise.shape), values=values_given(quantise.input_value),
                              ends=tuple(quantise.end or ()))
    asked = ExplorationRequest(
        models=models or (), space=search.space, objectives=search.objective or (), limits=search.limit or (),
        target=search.target, sampler=search.sampler or "nsga2", technology=search.technology or "", seed=search.seed,
        memory=prediction.memory or "", clock=prediction.clock or "", compilation=compilation)
    if search.accuracy is not None:
        _require_used({"--sampler": search.sampler, "--verify": verification.verify, "--ray": workers.ray,
                       "--objective": search.objective})
        _search_bits(asked, DataFiles(images=search.accuracy, labels=search.labels), output, search.trials, workers)
        return
    setup, named = setup_of(asked)
    evaluator = evaluator_of(setup, named, Steps(), compilation)
    output.mkdir(parents=True, exist_ok=True)
    study = ExplorationStudy(output, setup)
    try:
        _search(study, evaluator, output, search.trials, workers)
        _report(study, evaluator, output, verification.most)
    finally:
        study.close()


def _require_used(options: Mapping[str, object]) -> None:
    """Refuse options by which bits are not searched.

    Raises
    ------
    InputError
        Naming those that are given.
    """
    if given := [name for name, value in options.items() if value is not None]:
        raise InputError(f"Option --accuracy excludes {' and '.join(given)}: it tries layers in turn, here, for all "
                         "that it names, and measures nothing; leave it out")


def _search_bits(asked: "ExplorationRequest", data: "DataFiles", output: Path, trials: int,
                 workers: WorkerOptions) -> None:
    """Search the bits of layers, and show the front."""
    from tilewright.bench.precision.front_files import FILES
    from tilewright.bench.precision.precision_request import PrecisionRequest, explore_bits
    from tilewright.cli.tables.precision_tables import print_precision
    from tilewright.cli.tables.text import console
    from tilewright.tools.progress import Steps

    if asked.compilation.options.batch > 1:
        raise InputError("Option --accuracy excludes --batch: it judges one image at a time")
    given = (("--memory", asked.memory), ("--clock", asked.clock), ("--technology", asked.technology))
    run = [word for option, value in given if value for word in (option, value)]
    if asked.compilation.outputs_only:
        run.append("--outputs-only")
    report = explore_bits(PrecisionRequest(
        exploration=asked, data=data, output=output, trials=trials,
        jobs=workers.jobs or os.cpu_count() or 1, command=command_line(), run=tuple(run)), Steps())
    print_precision(report, console())
    console().print(f"Files: {', '.join(str(output / name) for name in FILES)}", highlight=False, soft_wrap=True)


def _search(study: "ExplorationStudy", evaluator: "Evaluator", output: Path, trials: int, options: WorkerOptions
            ) -> None:
    """Let workers evaluate designs until there are as many trials as wanted."""
    from tilewright.bench.exploration.exploration import explore as run
    from tilewright.bench.exploration.exploration_results import RunningTable
    from tilewright.cli.tables.exploration_progress import ExplorationProgress

    done = study.finished()
    progress = ExplorationProgress(study.setup.objectives, trials, done)
    if len(done) >= trials:
        return
    workers = _workers(evaluator, min(trials - len(done), options.jobs or os.cpu_count() or 1), options.ray)
    table = RunningTable(output, study)

    def show(trial: "FinishedTrial") -> None:
        progress.finished(trial)
        table.finished()

    try:
        with progress.shown():
            run(study, workers, trials, show)
    finally:
        workers.close()


def _workers(evaluator: "Evaluator", jobs: int, address: str | None) -> "Workers":
    if address is None:
        from tilewright.bench.exploration.local_workers import LocalWorkers

        return LocalWorkers(evaluator, jobs)
    try:
        from tilewright.bench.exploration.ray_workers import RayWorkers
    except ImportError as error:
        raise InputError(f"Option --ray needs Ray, which is not installed ({error}): "
                         f"pip install 'tilewright[cluster]'") from error
    return RayWorkers(evaluator, address)


def _report(study: "ExplorationStudy", evaluator: "Evaluator", output: Path, most: int) -> None:
    """Write the front and show it; then measure points of it, and show them beside what was predicted."""
    from tilewright.bench.exploration.explored_front import measure_front, require_front, write_front
    from tilewright.cli.tables.exploration_progress import (
        front_table,
        measuring_sentence,
        start_sentence,
        verified_table,
    )
    from tilewright.cli.tables.text import console
    from tilewright.tools.progress import Steps

    objectives, command = study.setup.objectives, shlex.join(["tilewright", *sys.argv[1:]])
    content = write_front(study, evaluator, output, command)
    require_front(study)
    console().print(front_table(content, objectives))
    console().print(start_sentence(content, objectives), highlight=False, soft_wrap=True)
    if most:
        count = min(most, len(content["points"]))
        console().print(measuring_sentence(count, output), highlight=False, soft_wrap=True)
        content = measure_front(study, evaluator, output, most, command, Steps())
        console().print(front_table(content, objectives))
        if (verified := verified_table(content)) is not None:
            console().print(verified)
