"""Run the networks of the zoo and write a page about them: ``python -m tilewright.bench.zoo.zoo LIST PAGE``.

Beside the page lie its facts as JSON, from which docs/operators.md takes the networks that the core is busy with. A
network whose file is missing is a row that says so; one that is refused, the refusal; one that crashes, the exception.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.bench.figure_store import FigureStore
from tilewright.bench.zoo.zoo_list import ListedNetwork, located, read_list
from tilewright.bench.zoo.zoo_page import NetworkFacts, zoo_page
from tilewright.compiler.network.options import BEST
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import Error, InputError
from tilewright.isa.machine import DEFAULT_MACHINE, preset
from tilewright.runtime.accuracy.evaluation import default_files
from tilewright.runtime.card.model_card import CardRequest, ModelCard, card_of
from tilewright.runtime.compared_run import ComparedRun, run_model
from tilewright.runtime.design.design import Design
from tilewright.runtime.model_source import ModelOrigin, ModelSource, find_model
from tilewright.runtime.predicted_run import predict_model
from tilewright.runtime.quantise.float_regions import Precision, precision_of
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.files import require_place, write_arrays, write_file
from tilewright.tools.page_origin import with_origin
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["facts_of"]

_SEED = 0
_DESIGNS = ("nano", "base", "large")


def facts_of(network: ListedNetwork, store: FigureStore, steps: Steps) -> NetworkFacts:
    """Return what is known of a network: kept facts, or those of a run now."""
    listed = {"name": network.name, "source": network.source, "licence": network.licence, "given": network.given}
    where = located(network, steps)
    if where is None:
        return NetworkFacts.from_json(listed | {"missing": network.member or str(network.file and network.file.name)})
    what = f"zoo {where} {network.given} {network.compared}"
    file = find_model(where, steps).path if network.model else Path(where)
    return NetworkFacts.from_json(store.get(what, file, lambda: _run(network, where, steps)) | listed)


def _run(network: ListedNetwork, where: str, steps: Steps) -> dict[str, Any]:
    """Return the facts of a run, for JSON: those that do not come from the list."""
    try:
        source = _source(network, where, steps)
        design = Design(machine=preset(DEFAULT_MACHINE))
        compared = run_model(source, design.machine, "fast", None, run=RunOptions(steps=steps)) if network.compared \
            else predict_model(source, design, BEST, steps)
        files = default_files(source) if source.origin is ModelOrigin.BUILT_IN and "lenet5" in where else None
        return _facts(compared, source) | _costs(card_of(source, CardRequest(designs=_DESIGNS, files=files), steps))
    except Error as error:
        return {"refused": error.sentence}
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return {"crashed": f"{type(error).__name__}: {error}"}


def _source(network: ListedNetwork, where: str, steps: Steps) -> ModelSource:
    shapes, values = dict(network.shape) or None, dict(network.value) or None
    if not network.samples:
        return find_model(where, steps, keep_float=network.keep_float, shapes=shapes, values=values)
    keep_float = precision_of(read_model(Path(where))) is not Precision.QUANTISED
    inputs = compile_network(find_model(where, steps, keep_float=keep_float, shapes=shapes, values=values).path).inputs
    rng = np.random.default_rng(_SEED)
    samples = cache_folder() / "zoo" / f"{Path(where).stem}-{network.samples}.npz"
    samples.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(samples, {str(info.onnx_name): rng.normal(size=(network.samples, *(info.onnx_shape or ()))).astype(
        np.float32) for info in inputs})
    return find_model(where, steps, calibrate=samples, shapes=shapes, values=values)


def _facts(compared: ComparedRun, source: ModelSource) -> dict[str, Any]:
    report, comparison = compared.report, compared.comparison
    kinds = Counter("core" if layer.algorithm == "core" else layer.algorithm for layer in report.layers)
    return {
        "cycles": report.cycles, "macs": sum(layer.macs for layer in report.layers),
        "layers": dict(kinds), "core_share": report.core_share.share,
        "causes": [asdict(cause) | {"layers": len(cause.layers)} for cause in report.core_share.causes],
        "ranges": "" if source.ranges is None else str(source.ranges.kind),
        "matches": comparison.matches, "compared": comparison.compared, "floats": comparison.floats,
        "loose": comparison.loose, "levels": comparison.levels,
        "untrusted": comparison.untrusted, "difference": str(comparison.difference or "")}


def _costs(card: ModelCard) -> dict[str, Any]:
    return {"costs": [asdict(cost) | {"core_operators": [*cost.core_operators]} for cost in card.costs],
            "accuracy": card.accuracy, "images": card.images}


def main() -> int:
    """Write the page and its facts; return 1 if a network crashed or differs from ONNX Runtime."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.bench.zoo.zoo", description=__doc__)
    parser.add_argument("list", type=Path, help="a TOML file, as docs/zoo.toml")
    parser.add_argument("page", type=Path, help="the page to write; its facts lie beside it, as .json")
    parser.add_argument("--fresh", action="store_true", help="run again what has been run before")
    given = parser.parse_args()
    steps, store = Steps(), FigureStore.open(fresh=given.fresh)
    try:
        require_place(given.page)
        zoo = read_list(given.list)
    except InputError as error:
        parser.error(error.sentence)
    found = [facts_of(network, store, steps) for network in zoo.networks]
    write_file(given.page, with_origin(zoo_page(found, zoo.silicon), "make zoo").encode())
    busy = [{"name": each.name, "why": each.busy} for each in found if each.busy]
    facts = json.dumps({"over_a_tenth": busy, "networks": [asdict(each) for each in found]}, indent=1)
    write_file(given.page.with_suffix(".json"), f"{facts}\n".encode())
    return any(each.crashed or each.matches is False for each in found)


if __name__ == "__main__":
    sys.exit(main())
