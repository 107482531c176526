"""``make demo``: both LeNets from ONNX to the report, in RTL, beside the same networks in plain C on the core alone."""

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tilewright.compiler.compile import compile_model
from tilewright.energy.baseline_energy import energy_of_baseline
from tilewright.isa.machine import Machine
from tilewright.models import BUILTIN, builtin
from tilewright.runtime.baseline.core_alone import BaselineResult
from tilewright.runtime.evaluate import Evaluation, evaluate, evaluate_baseline
from tilewright.runtime.execution.report import Report
from tilewright.runtime.execution.report_tables import print_report, range_text
from tilewright.runtime.session import InferenceSession
from tilewright.tools.output_files import write_file
from tilewright.tools.progress import Steps

MODELS = ("lenet5", "lenet5_accel")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A model's report, and what the baseline took for the same input."""

    report: Report
    baseline: BaselineResult

    @property
    def matches(self) -> bool:
        """Whether both ran right."""
        return bool(self.report.matches_reference) and self.baseline.matches


def demonstrate(machine: Machine, folder: Path, steps: Steps, out: Console) -> bool:
    """Show every step for each model, leave the results in ``folder``, and return whether all outputs match."""
    outcomes = [_demonstrate_model(name, machine, folder, steps, out) for name in MODELS]
    out.print(comparison_table(outcomes))
    out.print("Energy of the core alone leaves out its data accesses, in its favour.", highlight=False)
    out.print(f"Left in {folder}: for each model <model>.json, the report, and <model>/, the artefact: model.c is the "
              f"generated C, manifest.json says what is where.", highlight=False, soft_wrap=True)
    return all(outcome.matches for outcome in outcomes)


def _demonstrate_model(name: str, machine: Machine, folder: Path, steps: Steps, out: Console) -> Outcome:
    model = builtin(name)
    out.rule(f"{name}: {BUILTIN[name]}")
    with steps.step(f"Compiling {name} for {machine.name}"):
        artifact = compile_model(model, machine, folder / name, keep_tensors=True)
    out.print("[bold]plan")
    for layer in artifact.manifest.layers:
        out.print(f"  {layer.name} ({', '.join(layer.onnx_nodes)}): {layer.plan}", highlight=False, soft_wrap=True)
    session = InferenceSession(folder / name, engine="rtl", steps=steps)
    evaluation = evaluate(session, model, None, steps)
    print_report(evaluation.report, out)
    out.print(f"recognised as a {recognised(evaluation)}", highlight=False)
    write_file(folder / f"{name}.json", (json.dumps(evaluation.report.to_json(), indent=2) + "\n").encode())
    baseline = evaluate_baseline(model, None, steps=steps)
    return Outcome(evaluation.report, baseline)


def recognised(evaluation: Evaluation) -> int:
    """Return the digit with the largest logit."""
    (logits,) = evaluation.outputs.values()
    return int(logits.argmax())


def comparison_table(outcomes: list[Outcome]) -> Table:
    """Return cycles and energy beside the baseline's, two rows per model."""
    table = Table(title="The same simulator, every value the same")
    for head in ("model", "on", "cycles", "speed-up", "energy, µJ (range),\nnot calibrated", "equal to\nONNX Runtime"):
        table.add_column(head, justify="left" if head in ("model", "on") else "right")
    for outcome in outcomes:
        report, baseline = outcome.report, outcome.baseline
        scalar = energy_of_baseline(baseline)
        table.add_section()
        table.add_row(report.model, "CV32E40X alone, plain C -O3, memory that never waits", f"{baseline.cycles:,}",
                      "1 x", range_text(scalar), _yes(baseline.matches))
        table.add_row("", f"CV32E40X with Tilewright {report.machine}", f"{report.cycles:,}",
                      f"{baseline.cycles / report.cycles:.0f} x", range_text(report.energy),
                      _yes(report.matches_reference))
    return table


def _yes(matches: bool | None) -> str:
    return "yes" if matches else "NO"
