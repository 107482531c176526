"""The layers of a report as rows of a CSV file, for spreadsheets and data frames."""

import csv
import io

from tilewright.runtime.execution.report import LayerReport, Report

__all__ = ["layers_csv"]

_HEAD = ("layer", "kind", "algorithm", "onnx_nodes", "macs", "cycles", "share_of_cycles", "main_stall",
         "main_stall_cycles", "bytes_read", "bytes_written", "energy_uj", "energy_low_uj", "energy_high_uj", "why_core")


def layers_csv(report: Report) -> str:
    """Return a row for each layer, in the order of the run, behind a row of heads; names of nodes are joined by ``;``.

    Energy is in microjoules, with its absolute range. What comes behind the last layer is in no row.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_HEAD)
    rows.writerows(_row(layer, report) for layer in report.layers)
    return text.getvalue()


def _row(layer: LayerReport, report: Report) -> tuple[object, ...]:
    stall = layer.main_stall if layer.algorithm != "core" else None
    energy = layer.energy.total
    return (layer.name, layer.kind, layer.algorithm, ";".join(layer.onnx_nodes), layer.macs, layer.cycles,
            f"{layer.cycles / report.cycles:.6f}" if report.cycles else "", stall or "",
            layer.stalls[stall] if stall else "", layer.bytes_read, layer.bytes_written, f"{energy.uj:.6g}",
            f"{energy.absolute_low_uj:.6g}", f"{energy.absolute_high_uj:.6g}",
            layer.reason if layer.algorithm == "core" else "")
