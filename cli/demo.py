"""The command ``demo``: both LeNets from ONNX to the report, in RTL, beside plain C on the core alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import machine_named
from tilewright.cli.options.refusals import FAILED
from tilewright.models import BUILTIN, builtin
from tilewright.tools.files import write_file

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tilewright.isa.machine import Machine
    from tilewright.runtime.baseline.core_alone import BaselineResult
    from tilewright.runtime.compared_run import ComparedRun
    from tilewright.runtime.execution.report import Report
    from tilewright.tools.progress import Steps

__all__ = ["MODELS", "Outcome", "comparison_table", "demo", "demonstrate", "recognised", "register"]

MODELS = ("lenet5", "lenet5_accel")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A model's report, and the baseline's result for the same input."""

    report: "Report"
    baseline: "BaselineResult"

    @property
    def matches(self) -> bool:
        """Whether both ran right."""
        return bool(self.report.matches_reference) and self.baseline.matches


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright demo")(demo)


def demo(output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the results.")]
         = Path("out/demo")) -> None:
    """Run both LeNets from ONNX to the report, in RTL, beside plain C on the core alone."""
    from tilewright.cli.tables.text import console
    from tilewright.tools.progress import Steps

    if not demonstrate(machine_named("base"), output, Steps(), console()):
        raise typer.Exit(FAILED)


def demonstrate(machine: "Machine", folder: Path, steps: "Steps", out: "Console") -> bool:
    """Show every step for each model, leave the results in ``folder``, and return whether all outputs match."""
    outcomes = [_demonstrate_model(name, machine, folder, steps, out) for name in MODELS]
    out.print(comparison_table(outcomes))
    out.print("The energy of the core alone excludes its data accesses, which favours it.", highlight=False)
    out.print(f"Left in {folder}: for each model <model>.json, the report, and <model>/, the artefact. There, model.c "
              "is the generated C, and manifest.json lists addresses.", highlight=False, soft_wrap=True)
    return all(outcome.matches for outcome in outcomes)


def _demonstrate_model(name: str, machine: "Machine", folder: Path, steps: "Steps", out: "Console") -> Outcome:
    from tilewright.cli.tables.report_tables import print_report
    from tilewright.compiler.compile import compile_model
    from tilewright.runtime.compared_run import run_model_alone, run_session
    from tilewright.runtime.model_source import ModelSource
    from tilewright.runtime.run_options import RunOptions
    from tilewright.runtime.session import InferenceSession

    source = ModelSource.of(builtin(name))
    out.rule(f"{name}: {BUILTIN[name]}")
    with steps.step(f"Compiling {name} for {machine.name}"):
        artefact = compile_model(source.path, machine, folder / name, keep_tensors=True)
    out.print("[bold]plan")
    for layer in artefact.manifest.layers:
        out.print(f"  {layer.name} ({', '.join(layer.onnx_nodes)}): {layer.plan}", highlight=False, soft_wrap=True)
    session = InferenceSession(folder / name, engine="rtl", run_options=RunOptions(steps=steps))
    compared = run_session(session, source, None, steps)
    print_report(compared.report, out)
    out.print(f"recognised as a {recognised(compared)}", highlight=False)
    write_file(folder / f"{name}.json", (json.dumps(compared.report.to_json(), indent=2) + "\n").encode())
    baseline = run_model_alone(source, None, steps=steps)
    return Outcome(compared.report, baseline)


def recognised(compared: "ComparedRun") -> int:
    """Return the digit with the largest logit."""
    (logits,) = compared.outputs.values()
    return int(logits.argmax())


def comparison_table(outcomes: list[Outcome]) -> "Table":
    """Return cycles and energy beside the baseline's, two rows per model."""
    from tilewright.cli.tables.report_tables import range_text
    from tilewright.energy.baseline_energy import energy_of_baseline
    from tilewright.tools.fitted_table import FittedTable

    table = FittedTable(title="Same simulator, same values")
    table.column("model")
    table.column("on", least=16)
    table.column("cycles", number=True)
    table.column("speed-up", number=True)
    table.column("energy, µJ (range),\nnot calibrated", number=True, brief=lambda text: text.partition(" (")[0],
                 brief_head="energy, µJ,\nnot\ncalibrated", goes=1)
    table.column("equal to\nONNX Runtime")
    for outcome in outcomes:
        report, baseline = outcome.report, outcome.baseline
        scalar = energy_of_baseline(baseline)
        table.add_section()
        table.add_row(report.model, "CV32E40X alone, plain C -O3, zero-wait memory", f"{baseline.cycles:,}",
                      "1 x", range_text(scalar), _yes(baseline.matches))
        table.add_row("", f"CV32E40X with Tilewright {report.machine}", f"{report.cycles:,}",
                      f"{baseline.cycles / report.cycles:.0f} x", range_text(report.energy),
                      _yes(report.matches_reference))
    return table


def _yes(matches: bool | None) -> str:
    return "yes" if matches else "NO"
