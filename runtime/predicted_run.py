"""Run a model without computing it: cycles, counters and energy of each layer, in the time that compiling takes."""

from dataclasses import replace

from tilewright.compiler.compile import compile_file
from tilewright.compiler.explain import explain
from tilewright.compiler.network.options import Options
from tilewright.runtime.compared_run import ComparedRun
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.later_calls import kept_sentences
from tilewright.runtime.execution.prediction import predict_opening, predict_with_times
from tilewright.runtime.float_remarks import float_remarks, slower_remarks
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.comparison import Comparison
from tilewright.runtime.oracle.inputs import node_args
from tilewright.runtime.state_pairs import check_state, state_sentences
from tilewright.tools.progress import Steps

__all__ = ["predict_model"]


def predict_model(source: ModelSource, design: Design, options: Options, steps: Steps, *,
                  outputs_only: bool = False) -> ComparedRun:
    """Return the report of a model on a design; its tensors are not computed, so that none is compared.

    The model is compiled as for engine ``fast``, with every tensor kept unless ``outputs_only``, so that the cycles are
    the same.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the state that the source states is none.
    """
    with steps.step(f"Compiling {source.path.name}"):
        compiled = compile_file(source.path, design.machine, keep_tensors=not outputs_only, options=options)
    job = job_of_compiled(compiled, source.path.stem)
    with steps.step(f"Predicting the cycles of {source.path.stem}"):
        report, times = predict_with_times(job, design.timing, design.pricing)
    check_state(source.state, node_args(job.inputs, job.unread), node_args(job.outputs), batch=job.batch)
    explanation = explain(compiled)
    slower = slower_remarks(source, report.cycles, design.machine, design.timing, options, outputs_only=outputs_only)
    note = "no values were computed or compared; toggles are those of typical data"
    comparison = Comparison.of_nothing([(layer.name, layer.output) for layer in job.layers], "no values were computed")
    report = replace(report, judged=comparison.of_layers,
                     notes=(*source.notes, *float_remarks(source, report.layers), *slower, *explanation.notes,
                            *state_sentences(source.state, job.inputs),
                            *kept_sentences(job, predict_opening(job, design.timing)), note))
    return ComparedRun(report=report, outputs={}, statistics=(), comparison=comparison,
                       explanation=explanation, job=job, times=times)
