"""Run published networks and write a page about them: ``python -m tilewright.bench.real_networks LIST PAGE``.

Beside the page lie its facts as JSON, from which docs/operators.md takes the networks that the core is busy with. A
network whose file is missing is a row that says so; one that is refused, the refusal; one that crashes, the exception.
"""

import argparse
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.bench.figure_store import FigureStore
from tilewright.bench.real_networks_page import NetworkFacts, real_networks_page
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import Error, InputError
from tilewright.isa.machine import DEFAULT_MACHINE, preset
from tilewright.runtime.compared_run import ComparedRun, run_model
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.runtime.quantise.float_regions import Precision, precision_of
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.files import require_place, write_arrays, write_file
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["ListedNetwork", "facts_of", "read_list"]

_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNetwork:
    """An entry of the list.

    Attributes
    ----------
    name, source, licence : str
        As the page shows them.
    file : Path
    shape : mapping of str to list of int
        Of inputs with open dimensions.
    samples : int
        Seeded random inputs to quantise with; 0 for what the model is quantised with by itself.
    keep_float : bool
    """

    name: str
    file: Path
    source: str
    licence: str
    shape: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    samples: int = 0
    keep_float: bool = False


def read_list(path: Path) -> list[ListedNetwork]:
    """Return the networks of a list, a TOML file.

    Raises
    ------
    InputError
        If it cannot be read, or an entry has other keys than :class:`ListedNetwork` has fields.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        folder = path.parent / content["folder"]
        return [ListedNetwork(**{**entry, "file": folder / entry["file"],
                                 "shape": {name: tuple(extents) for name, extents in entry.get("shape", {}).items()}})
                for entry in content["network"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"List of networks {str(path)!r} must be TOML with folder and [[network]] entries of name, "
                         f"file, source and licence: {error}") from error


def facts_of(network: ListedNetwork, store: FigureStore, steps: Steps) -> NetworkFacts:
    """Return what is known of a network: kept facts, or those of a run now, every tensor compared with ONNX Runtime."""
    given = ", ".join([*(f"--shape {name}={','.join(map(str, extents))}" for name, extents in network.shape.items()),
                       *([f"--calibrate, {network.samples} random inputs"] if network.samples else []),
                       *(["--float"] if network.keep_float else [])])
    listed = {"name": network.name, "source": network.source, "licence": network.licence, "given": given}
    if not network.file.is_file():
        return NetworkFacts.from_json(listed | {"missing": network.file.name})
    what = f"real network {network.shape} {network.samples} {network.keep_float}"
    return NetworkFacts.from_json(store.get(what, network.file, lambda: _run(network, steps)) | listed)


def _run(network: ListedNetwork, steps: Steps) -> dict[str, Any]:
    """Return the facts of a run, for JSON: those that do not come from the list."""
    try:
        source = _source(network, steps)
        return _facts(run_model(source, preset(DEFAULT_MACHINE), "fast", None, run=RunOptions(steps=steps)), source)
    except Error as error:
        return {"refused": error.sentence}
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return {"crashed": f"{type(error).__name__}: {error}"}


def _source(network: ListedNetwork, steps: Steps) -> ModelSource:
    name, shapes = str(network.file), dict(network.shape) or None
    if not network.samples:
        return find_model(name, steps, keep_float=network.keep_float, shapes=shapes)
    keep_float = precision_of(read_model(network.file)) is not Precision.QUANTISED
    inputs = compile_network(find_model(name, steps, keep_float=keep_float, shapes=shapes).path).inputs
    rng = np.random.default_rng(_SEED)
    samples = cache_folder() / "real-networks" / f"{network.file.stem}-{network.samples}.npz"
    samples.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(samples, {str(info.onnx_name): rng.normal(size=(network.samples, *(info.onnx_shape or ()))).astype(
        np.float32) for info in inputs})
    return find_model(name, steps, calibrate=samples, shapes=shapes)


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


def main() -> int:
    """Write the page and its facts; return 1 if a network crashed or differs from ONNX Runtime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("list", type=Path, help="a TOML file, as docs/real-networks.toml")
    parser.add_argument("page", type=Path, help="the page to write; its facts lie beside it, as .json")
    parser.add_argument("--fresh", action="store_true", help="run again what has been run before")
    given = parser.parse_args()
    steps, store = Steps(), FigureStore.open(fresh=given.fresh)
    try:
        require_place(given.page)
        networks = read_list(given.list)
    except InputError as error:
        parser.error(error.sentence)
    found = [facts_of(network, store, steps) for network in networks]
    write_file(given.page, real_networks_page(found).encode())
    busy = [{"name": each.name, "why": each.busy} for each in found if each.busy]
    facts = json.dumps({"over_a_tenth": busy, "networks": [asdict(each) for each in found]}, indent=1)
    write_file(given.page.with_suffix(".json"), f"{facts}\n".encode())
    return any(each.crashed or each.matches is False for each in found)


if __name__ == "__main__":
    sys.exit(main())
