"""The commands ``baseline`` and ``bench``: a network on a core alone, and tables of networks on machines."""

import math
import shlex
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.options.arguments import (
    ClockText,
    Engine,
    EngineName,
    HtmlFile,
    MemoryText,
    Model,
    PageFileOptions,
    QuantiseOptions,
    TechnologyName,
    command_line,
    designs_listed,
    priced,
    say_ranges,
    with_groups,
    write_json,
)
from tilewright.cli.options.refusals import FAILED
from tilewright.errors import InputError
from tilewright.tools.files import require_place, write_file

__all__ = ["BaselineCore", "CaseOptions", "baseline", "bench", "register_baseline", "register_bench"]


class BaselineCore(StrEnum):
    """Cores that a baseline runs on."""

    cv32e40x = "cv32e40x"
    cv32e40p = "cv32e40p"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOptions:
    """The networks and machines to run, and the engine."""

    quick: Annotated[bool, typer.Option("--quick", help="Run only LeNet-5 and "
                                                        "the networks with 3x32x32 inputs.")] = False
    engine: EngineName = Engine.rtl
    only: Annotated[str | None, typer.Option("--only", metavar="A,B", show_default=False,
                                             help="Run only these networks, by name.")] = None
    machines: Annotated[str | None, typer.Option(
        "--machines", metavar="DESIGN,…", show_default=False,
        help="Designs to run on, such as nano,base,lanes=8,mine.toml: changes follow their design. Without this option "
             "all presets run, and 224x224 images run in RTL only on base.")] = None
    memory: MemoryText = None
    html_file: HtmlFile = None


def register_baseline(app: typer.Typer) -> None:
    """Add ``baseline`` to the command line."""
    app.command(epilog="Example: tilewright baseline lenet5 --json baseline.json")(baseline)


def register_bench(app: typer.Typer) -> None:
    """Add ``bench`` to the command line."""
    app.command(epilog="Example: tilewright bench --quick --engine fast")(bench)


@with_groups
def baseline(model: Model,
             core: Annotated[BaselineCore, typer.Option("--core", help="The core: CV32E40X with plain C, or CV32E40P "
                                                                       "with XPULP SIMD.")]
             = BaselineCore.cv32e40x, *, files: PageFileOptions, technology: TechnologyName = None,
             clock: ClockText = None, quantise: QuantiseOptions) -> None:
    """Run MODEL as C on a core alone, in the same simulator, with zero-wait memory.

    Large models run in parts, and their cycles are scaled.
    """
    require_place(files.json_file, files.html_file)
    pricing = priced(technology, clock)
    source = quantise.model(model)
    from tilewright.cli.tables.baseline_table import baseline_table
    from tilewright.cli.tables.report_tables import energy_text
    from tilewright.cli.tables.text import console
    from tilewright.energy.baseline_energy import energy_of_baseline
    from tilewright.runtime.compared_run import run_model_alone
    from tilewright.runtime.execution.report import energy_json
    from tilewright.tools.progress import Steps

    name = source.path.stem
    result = run_model_alone(source, files.input_file, core=core.value, steps=Steps())
    out = console()
    out.print(baseline_table(name, result))
    say_ranges(source)
    energy = energy_of_baseline(result, pricing)
    out.print(energy_text(energy, pricing.describe(pricing.load())), highlight=False, soft_wrap=True)
    mhz = pricing.clock(pricing.load()).mhz
    milliseconds = result.cycles / (1e3 * mhz)
    out.print(f"time at {mhz:g} MHz: {milliseconds:,.3f} ms", highlight=False)
    out.print(f"every layer equal to the integer reference: {'yes' if result.matches else 'NO'}", highlight=False)
    if files.json_file is not None:
        write_json(files.json_file, {
            "model": name, "core": result.core, "cycles": result.cycles, "milliseconds": milliseconds, "clock_mhz": mhz,
            "instructions": result.instructions,
            "macs": sum(layer.macs for layer in result.layers), "matches_reference": result.matches,
            "energy": energy_json(energy) | {"technology": pricing.load().name},
            "layers": [asdict(layer) for layer in result.layers]})
    if files.html_file is not None:
        from tilewright.runtime.views.tables_page import TablesPage, rows_table

        page = TablesPage(
            title=f"{name} as C on {result.core} alone", command=command_line(),
            figures=[("cycles", f"{result.cycles:,}", f"{milliseconds:,.3f} ms at {mhz:g} MHz"),
                     ("energy", f"{energy.total_uj:,.3g} µJ",
                      f"absolute {energy.low_uj:,.3g} … {energy.high_uj:,.3g}; {pricing.load().name}"),
                     ("equal to the integer reference", "yes" if result.matches else "no", "every layer")],
            tables=[rows_table("Layers", [asdict(layer) for layer in result.layers], bars="cycles")])
        write_file(files.html_file, page.html().encode())
    if not result.matches:
        raise typer.Exit(FAILED)


@with_groups
def bench(cases: CaseOptions,
          output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The page to write.")]
          = Path("docs/benchmarks.md"),
          energy: Annotated[Path | None, typer.Option("--energy", metavar="FILE", show_default=False,
                                                      help="Also write the page "
                                                           "on energy, such as docs/energy.md.")] = None,
          rtl_cycles: Annotated[float | None, typer.Option(
              "--rtl-cycles", metavar="N", show_default=False,
              help="Predict runs of more cycles than this instead of simulating them.")] = None,
          all_baselines: Annotated[bool, typer.Option(
              "--all-baselines", help="Run the baselines of all networks, not only of the main ones.")] = False,
          fresh: Annotated[bool, typer.Option("--fresh", help="Ignore saved results "
                                                              "and run everything again.")] = False,
          peers: Annotated[bool, typer.Option(
              "--peers", help="Only print our cycles beside those that Arm's Vela estimates for an Ethos-U55, for "
                              "eight networks or those of --only. Needs the extra peers.")] = False) -> None:
    """Run networks on machines, with and without each optimisation, beside the baselines; write a page of tables.

    Results are saved: an interrupted bench continues where it was.
    """
    if peers:
        _print_peers(cases, fresh=fresh)
        return
    require_place(output, energy, cases.html_file)
    from tilewright.bench.bench import bench as run_bench
    from tilewright.bench.cases import FULL, QUICK, matrix
    from tilewright.bench.figure_store import FigureStore
    from tilewright.tools.progress import Steps

    if cases.quick and cases.only is not None:
        raise InputError("Options --quick and --only exclude each other: both choose the networks")
    names = cases.only.split(",") if cases.only is not None else QUICK if cases.quick else FULL
    chosen = matrix(names, designs_listed(cases.machines) if cases.machines is not None else None,
                    cases.engine.with_values, memory=cases.memory)
    given = {"--engine": None if cases.engine is Engine.rtl else cases.engine.value, "--only": cases.only,
             "--machines": cases.machines, "--memory": cases.memory,
             "--rtl-cycles": None if rtl_cycles is None else f"{rtl_cycles:.0f}", "--energy": energy}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    flags = [flag for flag, wanted in (("--quick", cases.quick), ("--all-baselines", all_baselines)) if wanted]
    command = shlex.join(["tilewright", "bench", *flags, *words])
    matches = run_bench(chosen, output, Steps(), store=FigureStore.open(fresh=fresh), command=command, energy=energy,
                     all_baselines=all_baselines, rtl_cycles=math.inf if rtl_cycles is None else rtl_cycles)
    if cases.html_file is not None:
        from tilewright.runtime.views.tables_page import TablesPage, markdown_tables

        page = TablesPage(title="Benchmarks", command=command,
                          tables=list(markdown_tables(output.read_text(encoding="utf-8"))))
        write_file(cases.html_file, page.html().encode())
    if not matches:
        raise typer.Exit(FAILED)


def _print_peers(cases: CaseOptions, *, fresh: bool) -> None:
    """Print the table of ours and Vela's figures."""
    from tilewright.bench.figure_store import FigureStore
    from tilewright.bench.peers import COMPARED_NETWORKS, peers, peers_table
    from tilewright.tools.progress import Steps

    names = COMPARED_NETWORKS if cases.only is None else cases.only.split(",")
    if unknown := [name for name in names if name not in COMPARED_NETWORKS]:
        raise InputError(f"Networks beside peers must be of {', '.join(COMPARED_NETWORKS)}, not {unknown[0]!r}")
    typer.echo(peers_table(peers(names, FigureStore.open(fresh=fresh), Steps())))
