"""Tables of the findings of ``tilewright compare``."""

from rich.console import Console
from rich.table import Table

from tilewright.cli.tables.text import plain, short_name
from tilewright.runtime.compare.layer_report import LayerComparison
from tilewright.runtime.compare.other_references import ReferenceComparison
from tilewright.runtime.compare.three_ways import Word
from tilewright.runtime.execution.verdict import count_text, counts
from tilewright.runtime.oracle import onnx_runtime as onnx_reference
from tilewright.tools.fitted_table import FittedTable

__all__ = ["comparison_table", "print_comparison", "print_reference", "reference_table", "summary"]

_TICKS: dict[Word, str] = {"equal": "✓", "alone": "✓ from its inputs", "near": "≈", "hidden": "–", "differs": "✗"}

_LEGEND = ("✓ every element equal; ✓ from its inputs: equal when given ONNX Runtime's inputs, because an earlier layer "
           "is off; ≈ within the tolerance where ONNX Runtime computes in float (one level, or the last digits of a "
           "float); – ONNX Runtime does not show it; ✗ different")

_COLUMNS: tuple[tuple[str, bool, int], ...] = (
    ("", True, 1), ("layer", False, 0), ("by", False, 2), ("tensor", True, 3), ("reference =\nONNX Runtime", False, 0),
    ("engine =\nreference", False, 0))
"""Head, whether it holds numbers, and its turn when columns are dropped."""


_OUTPUT_COLUMNS: tuple[tuple[str, bool, int], ...] = (
    ("output", False, 0), ("", False, 0), ("elements", True, 1), ("off", True, 0), ("by up to", True, 0))


def print_comparison(comparison: LayerComparison, out: Console) -> None:
    """Print the table of the layers and what follows from it."""
    out.print(comparison_table(comparison))
    for line in summary(comparison):
        out.print(plain(line), highlight=False, soft_wrap=True)


def comparison_table(comparison: LayerComparison) -> Table:
    """Return the table of the layers up to the first that differs."""
    table = FittedTable(title=plain(f"{comparison.model} on {comparison.machine}: ONNX Runtime "
                                    f"{onnx_reference.VERSION}, integer reference, engine {comparison.engine}"))
    columns = (*_COLUMNS, ("SQNR, dB", True, 0)) if comparison.error else _COLUMNS
    for head, number, turn in columns:
        table.column(head, number=number, goes=turn)
    ratios = {each.tensor: f"{each.sqnr:.1f}" for each in comparison.error.layers} if comparison.error else {}
    for row in comparison.found.rows:
        tick = _TICKS[row.onnx_runtime]
        if row.onnx_runtime in ("near", "differs"):
            tick += f" {row.off} off" + (f", up to {row.verdict.distance}" if row.verdict.distance else "")
        shape = "x".join(map(str, row.shape)) or "1"
        table.add_row(str(row.index), short_name(row.name), row.kind, shape, tick, _TICKS[row.engine],
                      *([ratios.get(row.tensor, "–")] if comparison.error else []))
    return table


def print_reference(comparison: ReferenceComparison, out: Console, advice: str = "") -> None:
    """Print the integer reference beside another one: the outputs, the layers in numbers, and advice if they differ."""
    out.print(reference_table(comparison))
    lines = [f"{comparison.engine} {comparison.version}: {comparison.settings}", f"input: {comparison.origin}",
             f"tensors of layers: {_counts(comparison)}",
             str(comparison.start or f"no tensor that {comparison.engine} shows is off"),
             "For information: what must be equal is --reference integer (docs/exactness.md)"]
    if advice and comparison.start is not None:
        lines.append(advice)
    for line in lines:
        out.print(plain(line), highlight=False, soft_wrap=True)


def reference_table(comparison: ReferenceComparison) -> Table:
    """Return the table of the outputs beside another reference."""
    table = FittedTable(title=plain(f"{comparison.model}: integer reference beside {comparison.engine} "
                                    f"{comparison.version}, {comparison.reference}"))
    for head, number, turn in _OUTPUT_COLUMNS:
        table.column(head, number=number, goes=turn)
    for each in comparison.outputs:
        verdict = each.verdict
        words = verdict.why if verdict.kind == "not compared" else "equal" if verdict.kind == "equal" else "off"
        table.add_row(plain(each.name), words, f"{verdict.elements:,}", f"{verdict.off:,}", verdict.distance or "–")
    return table


def _counts(comparison: ReferenceComparison) -> str:
    found = counts(comparison.verdicts)
    return (f"{found['equal']:,} equal, {found['differs'] + found['declared']:,} off, {found['not compared']:,} not "
            f"compared, as {comparison.engine} does not show them")


def summary(comparison: LayerComparison) -> list[str]:
    """Return the facts about the comparison, one line each."""
    found, error = comparison.found, comparison.error
    lines = [_LEGEND, f"ONNX Runtime {onnx_reference.VERSION}: {onnx_reference.settings()}",
             f"input: {comparison.origin}"]
    if comparison.ranges is not None:
        lines.append(comparison.ranges.sentence)
    lines += comparison.changes
    if comparison.untrusted:
        lines.append(comparison.untrusted)
    if error is not None:
        share = f"{100 * error.agreeing / error.answers:.1f} %" if error.answers else "none"
        worst = ", ".join(f"{each.layer} ({each.sqnr:.1f} dB)" for each in error.worst)
        lines.append(f"int8 against float over {error.samples} calibration samples: top-1 agrees in {error.agreeing} "
                     f"of {error.answers} answers ({share}); worst layers: {worst or 'none could be compared'}")
    if found.divergence is not None:
        lines.append(str(found.divergence))
        lines += _written(comparison)
        return lines
    lines.append(f"{found.layers} layers: the engine equals the integer reference in every one; beside ONNX Runtime, "
                 f"{count_text(comparison.verdicts, 'layers')}")
    lines += [f"the first that is off is layer {row.index} ({row.name}): {row.verdict}" for row in found.rows
              if row.verdict.kind == "declared"][:1]
    lines += [f"output {each.name} beside ONNX Runtime: {each.verdict}" for each in found.outputs]
    return lines


def _written(comparison: LayerComparison) -> list[str]:
    """Return what is known of how the first wrong element came to be."""
    writer, divergence = comparison.writer, comparison.found.divergence
    assert divergence is not None
    if writer is None:
        return ["no instruction of the program writes this address"]
    lines = [f"written by {writer}", f"    {writer.text}"]
    if writer.function_index != divergence.layer:
        lines.append(f"which belongs to another layer: {writer.function} has overwritten it")
    lines.append(f"the program alone, replayed, writes the byte {writer.value} there")
    return lines
