"""The page of the benchmarks: Markdown tables of figures. Every row says on what machine and by which engine."""

from collections.abc import Mapping
from pathlib import Path

from tilewright.bench.baselines import BaselineFigures
from tilewright.bench.cases import NO_REUSE, NO_WINOGRAD, UNFUSED, BenchCase
from tilewright.bench.paper import TILE_CYCLES, TILE_CYCLES_BEFORE, paper_table, run_named, tile_cycles
from tilewright.bench.runs import Figures
from tilewright.bench.speedups import baseline_table, speedup_table
from tilewright.bench.table_rows import PLACE, Results, best, energy, place, run_table
from tilewright.compiler.network.options import BEST, Options
from tilewright.tools.markdown import change
from tilewright.tools.templates import render

__all__ = ["page", "pairs"]

_LONG = 10_000
"""Cycles from which on a layer's prediction is judged: dozens of cycles of start-up are a lot of a short one."""

_TEMPLATE = Path(__file__).with_name("benchmarks_page.md.j2")


def page(results: Results, baselines: Mapping[str, tuple[BaselineFigures, ...]], *,
         refused: Mapping[str, str] | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    results : mapping of Case to Figures
    baselines : mapping of str to tuple of BaselineFigures
        By network.
    refused : mapping of str to str
        Cases that could not run, with the compiler's sentence.
    """
    return render(
        _TEMPLATE, refused=refused or {}, networks=_network_table(results),
        speedups=speedup_table(results, baselines), baselines=baseline_table(baselines), fusion=_fusion_table(results),
        winograd=_winograd_table(results), reuse=_reuse_table(results), depthwise=_depthwise_table(results),
        simulation=_simulation_table(results), paper=paper_table(results, baselines), tiles=tile_cycles(results),
        run_named=run_named, paper_tile_cycles_before=TILE_CYCLES_BEFORE, paper_tile_cycles=TILE_CYCLES)


def _network_table(results: Results) -> str:
    """Return the table of all networks on all machines."""
    rows = [[*place(case), f"{each.macs:,}", f"{each.cycles:,}", f"{each.macs_per_multiplier_cycle:.2f}",
             f"{each.roofline_cycles:,}", f"{100 * each.roofline_share:.1f} %",
             f"{100 * each.core_cycles / each.cycles:.1f} %", f"{each.memory_bytes:,}", f"{each.bytes_moved:,}",
             energy(each), each.verdict]
            for case, each in best(results)]
    heads = (*PLACE, "MACs", "cycles", "MAC per multiplier and cycle", "roofline, cycles", "share of roofline",
             "cycles in layers that run on the core", "main memory needed, bytes", "moved over the bus, bytes",
             "energy, µJ (range)", "layers equal to ONNX Runtime")
    return run_table(heads, rows)


def pairs(results: Results, options: Options) -> list[tuple[BenchCase, Figures, Figures]]:
    """Return the runs with every optimisation beside those with ``options``."""
    return [(case, results[full], figures) for case, figures in results.items() if case.options == options
            and (full := BenchCase(network=case.network, machine=case.machine, engine=case.engine,
                                     memory=case.memory)) in results]


def _fusion_table(results: Results) -> str:
    """Return what fusing convolution and pooling brings."""
    rows = [[*place(case), f"{fused.cycles:,}", f"{apart.cycles:,}", change(fused.cycles, apart.cycles),
             f"{fused.bytes_moved:,}", f"{apart.bytes_moved:,}", change(fused.bytes_moved, apart.bytes_moved),
             energy(fused), energy(apart), change(fused.energy.total_uj, apart.energy.total_uj)]
            for case, fused, apart in pairs(results, UNFUSED)]
    heads = (*PLACE, "cycles, fused", "apart", "change", "bytes moved, fused", "apart", "change",
             "energy, µJ (range), fused", "apart", "change")
    return run_table(heads, rows)


def _winograd_table(results: Results) -> str:
    """Return what conv23 brings over conv."""
    rows = [[*place(case), f"{full.winograd_layers} of {full.layers}", f"{full.cycles:,}", f"{less.cycles:,}",
             change(full.cycles, less.cycles), energy(full), energy(less),
             change(full.energy.total_uj, less.energy.total_uj)]
            for case, full, less in pairs(results, NO_WINOGRAD)]
    heads = (*PLACE, "layers by conv23", "cycles, conv23 where faster", "conv alone", "change",
             "energy, µJ (range), conv23", "conv alone", "change")
    return run_table(heads, rows)


def _reuse_table(results: Results) -> str:
    """Return what column reuse brings."""
    rows = [[*place(case), f"{full.buffer_bytes_read:,}", f"{less.buffer_bytes_read:,}",
             change(full.buffer_bytes_read, less.buffer_bytes_read), f"{full.cycles:,}", f"{less.cycles:,}",
             energy(full), energy(less), change(full.energy.total_uj, less.energy.total_uj)]
            for case, full, less in pairs(results, NO_REUSE)]
    heads = (*PLACE, "read from the activation buffer, bytes, with reuse", "without", "change", "cycles, with reuse",
             "without", "energy, µJ (range), with reuse", "without", "change")
    return run_table(heads, rows)


def _depthwise_table(results: Results) -> str:
    """Return what depthwise convolutions take, where there are any."""
    rows = [[*place(case), f"{part.stride}", f"{part.layers}", f"{part.macs:,}", f"{part.cycles:,}",
             f"{part.macs / (each.multipliers * part.cycles):.2f}", f"{100 * part.cycles / each.cycles:.1f} %"]
            for case, each in best(results) for part in each.depthwise]
    heads = (*PLACE, "stride", "layers", "MACs", "cycles", "MAC per multiplier and cycle", "of the network's cycles")
    return run_table(heads, rows)


def _simulation_table(results: Results) -> str:
    """Return how long either engine takes, and how far the fast one is off where RTL ran too."""
    runs: dict[tuple[str, ...], dict[str, Figures]] = {}
    for case, each in results.items():
        if case.options == BEST:
            runs.setdefault(tuple(place(case)[:-1]), {})[case.engine] = each
    rows = []
    for where, engines in runs.items():
        both = [engines.get("fast"), engines.get("rtl")]
        predicted, simulated = both
        errors = ["", ""] if predicted is None or simulated is None else [
            change(predicted.cycles, simulated.cycles), _largest_error(predicted, simulated)]
        rows.append([*where, *(f"{each.cycles:,}" if each else "" for each in both), *errors,
                     *(f"{each.seconds:.2f}" if each else "" for each in both),
                     *(f"{each.cycles_per_second:,.0f}" if each else "" for each in both)])
    heads = (*PLACE[:-1], "cycles, fast", "cycles, rtl", "predicted − simulated",
             f"largest of a layer of ≥ {_LONG:,} cycles", "seconds, fast", "seconds, rtl",
             "cycles per second, fast", "cycles per second, rtl")
    return run_table(heads, rows, left=len(PLACE) - 1)


def _largest_error(predicted: Figures, simulated: Figures) -> str:
    """Return the largest error of a long layer's cycles, in per cent; a dash where no layer is long."""
    pairs = [(here, there) for here, there in zip(predicted.layer_cycles, simulated.layer_cycles, strict=True)
             if there >= _LONG]
    return change(*max(pairs, key=lambda pair: abs(pair[0] / pair[1] - 1))) if pairs else "–"
