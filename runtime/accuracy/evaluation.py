"""Evaluate a model over a data set: chunks of images in several processes, each stored as it is done."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from pathlib import Path

from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError, SimulationError
from tilewright.isa.extension import extension_of
from tilewright.models import data
from tilewright.runtime.accuracy.accuracy_report import AccuracyReport
from tilewright.runtime.accuracy.answers import (
    Answerer,
    Answers,
    Column,
    Question,
    ValueEngine,
    scores_of,
)
from tilewright.runtime.accuracy.data_set import DataFiles, DataSet, read_data_set
from tilewright.runtime.accuracy.finished_chunks import FinishedChunks, question_key
from tilewright.runtime.design.design import Design
from tilewright.runtime.model_source import ModelOrigin, ModelSource
from tilewright.runtime.oracle.expected_tensors import inexact_tensors
from tilewright.runtime.oracle.inputs import node_args
from tilewright.sim.verilator.build import build_simulator
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["EvaluationRequest", "default_files", "default_jobs", "evaluate"]

CHUNK = {ValueEngine.VALUES: 32, ValueEngine.FAST: 4, ValueEngine.RTL: 1}
"""Images that are stored at a time: what an interruption can lose in each process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """A request for an evaluation.

    Attributes
    ----------
    files : DataFiles
    design : Design
        For the engines.
    engine : ValueEngine
    options : Options
        Of the compiler.
    float_model : Path or None
        To compare with, for a model that comes quantised.
    output : str or None
        The output with the classes' scores; the first if None.
    limit : int or None
        Evaluate only so many images, the first ones.
    jobs : int
        Processes.
    fresh : bool
        Evaluate again what an earlier evaluation has finished.
    """

    files: DataFiles
    design: Design
    engine: ValueEngine = ValueEngine.VALUES
    options: Options = BEST
    float_model: Path | None = None
    output: str | None = None
    limit: int | None = None
    jobs: int = 1
    fresh: bool = False

    def __post_init__(self) -> None:
        for name, number in (("Jobs", self.jobs), ("Limit", self.limit)):
            if number is not None and number < 1:
                raise InputError(f"{name} must be one or more, not {number}")


def default_jobs() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_files(source: ModelSource) -> DataFiles:
    """Return the labelled images that come with a model.

    Raises
    ------
    InputError
        If it has none.
    """
    if source.origin is not ModelOrigin.BUILT_IN:
        raise InputError(f"Model {source.path.stem!r} has no labelled images of its own: give --input FILE")
    return DataFiles(images=data.SAMPLES_FILE)


def evaluate(source: ModelSource, request: EvaluationRequest, steps: Steps) -> AccuracyReport:
    """Return how accurate a model is over a data set.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the data set does not suit the model.
    SimulationError
        If a program does not end as it must, or the evaluation was interrupted; what it has finished is kept.
    """
    began = time.monotonic()
    with steps.step(f"Compiling {source.path.name}"):
        network = compile_network(source.path, request.options, extension_of(request.design.machine))
    output, classes = scores_of(network, request.output)
    images = read_data_set(request.files, node_args(network.inputs), classes)
    float_model = request.float_model or (source.quantised.float_model if source.quantised is not None else None)
    question = Question(network=network, model=source.path, float_model=float_model, output=output,
                        engine=request.engine, machine=request.design.machine, memory=request.design.memory,
                        options=request.options)
    if request.engine is ValueEngine.RTL:
        with steps.step(f"Building the simulator of {request.design.machine.name}"):
            build_simulator(request.design.machine)
    chunks = FinishedChunks(cache_folder() / "evaluations" / question_key(question, request.files))
    if request.fresh:
        chunks.clear()
    count = min(len(images), request.limit or len(images))
    run = _Evaluation(question, request.files, images, chunks, request.jobs, steps)
    with steps.count(f"Evaluating {source.path.stem}", count) as done:
        answers = run.answers(count, done)
    inexact = inexact_tensors([(layer.reads, layer.writes, layer.exact) for layer in network.layers], network.tensors)
    return AccuracyReport(
        model=source.path.stem, output=output, classes=classes, engine=request.engine.value,
        design=request.design, answers=answers, labels=None if images.labels is None else images.labels[:count],
        declared=question.scores.name in inexact, untrusted=run.untrusted, resumed=run.resumed,
        seconds=time.monotonic() - began, evaluated_now=count - run.resumed,
        notes=(*source.notes, f"images: {request.files.images}"))


class _Evaluation:
    """One evaluation on its way through its chunks."""

    def __init__(self, question: Question, files: DataFiles, images: DataSet, chunks: FinishedChunks, jobs: int,
                 steps: Steps) -> None:
        self._question = question
        self._files = files
        self._images = images
        self._chunks = chunks
        self._jobs = jobs
        self._steps = steps
        self.resumed = 0
        self.untrusted = ""

    def answers(self, count: int, done: Callable[[], None]) -> Answers:
        """Return the answers to the first ``count`` images; each that is answered or was so before calls ``done``."""
        size = CHUNK[self._question.engine]
        ranges = [range(start, min(start + size, count)) for start in range(0, count, size)]
        found = {each: stored for each in ranges if (stored := self._chunks.load(each)) is not None}
        missing = [each for each in ranges if each not in found]
        self.resumed = count - sum(map(len, missing))
        _times(self.resumed, done)
        try:
            for each, answers in self._answered(missing):
                self._chunks.save(each, answers)
                found[each] = answers
                _times(len(each), done)
        except KeyboardInterrupt:
            kept = sum(map(len, found))
            raise SimulationError(f"Evaluation was interrupted, and the answers to {kept} of {count} images are saved: "
                                  f"the same command continues from there, and --fresh starts again") from None
        joined = Answers.join([found[each] for each in ranges])
        if Column.QUANTISED not in joined.top:
            self.untrusted = self.untrusted or Answerer(self._question).untrusted
        return joined

    def _answered(self, missing: Sequence[range]) -> Iterator[tuple[range, Answers]]:
        """Yield ranges of images with their answers, as they are done."""
        jobs = min(self._jobs, len(missing))
        if jobs <= 1:
            answerer = Answerer(self._question) if missing else None
            for each in missing:
                assert answerer is not None
                yield each, answerer.answer([self._images.feed(index) for index in each])
            return
        with _processes(jobs, replace(self._question, threads=1), self._files) as pool:
            with _no_interruption():  # the processes start here, and take no interruption: this one ends them
                futures = {pool.submit(_answer_here, each): each for each in missing}
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except BrokenProcessPool as error:
                    raise SimulationError(f"One of {jobs} processes of the evaluation was killed from outside; fewer "
                                          "--jobs take less memory") from error


def _times(count: int, done: Callable[[], None]) -> None:
    for _ in range(count):
        done()


@contextmanager
def _no_interruption() -> Iterator[None]:
    """Ignore SIGINT until the block ends, and in processes that it starts for good."""
    if threading.current_thread() is not threading.main_thread():  # others may not set it
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _processes(jobs: int, question: Question, files: DataFiles) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool whose processes answer a question; they end at once if the block ends with an exception."""
    others = active_children()
    threads = {name: os.environ.get(name) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    os.environ.update(dict.fromkeys(threads, "1"))  # a process for each processor: none shall use several
    # Not forked: ONNX Runtime has threads, which a forked process would wait for.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _prepare, (question, files))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(active_children()).difference(others):
            process.terminate()
        raise
    finally:
        for name, value in threads.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    pool.shutdown()


_HERE: dict[str, tuple[Answerer, DataSet]] = {}
"""Model that a process of the pool answers with."""


def _prepare(question: Question, files: DataFiles) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    _, classes = scores_of(question.network, question.output)
    _HERE["it"] = Answerer(question), read_data_set(files, node_args(question.network.inputs), classes)


def _answer_here(images: range) -> Answers:
    answerer, data_set = _HERE["it"]
    return answerer.answer([data_set.feed(index) for index in images])
