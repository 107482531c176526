"""The page docs/batches.md: cycles and bytes per image of batches of several sizes, predicted and in RTL."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.bench.figure_store import FigureStore
from tilewright.compiler.network.options import Options
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.files import require_place, write_file
from tilewright.tools.markdown import digits, table
from tilewright.tools.page_origin import with_origin
from tilewright.tools.progress import Steps
from tilewright.tools.templates import render

__all__ = [
    "BATCHES", "CHECKED", "MACHINE", "NETWORKS", "SLOWER", "BatchCost", "CheckedBatch", "batches_page", "predict",
]

_TEMPLATE = Path(__file__).with_name("batches_page.md.j2")

BATCHES = (1, 2, 4, 8)
NETWORKS = ("lenet5", "lenet5_accel", "mlperf-ad", "mlperf-kws", "mlperf-resnet8", "mlperf-vww", "vgg16-32",
            "resnet18-32", "resnet18-224", "vgg16-224", "mobilenetv2-224", "squeezenet-224", "detector-224")
CHECKED = ("lenet5", "mlperf-ad", "mlperf-kws")
"""Networks that are run in RTL too, with a batch of each size."""

CHECKED_ONCE = {"vgg16-32": 4, "resnet18-32": 2}
"""Networks that are run in RTL with one batch."""

MACHINE = "base"

SLOWER = 1.01
"""An image of a batch may take so many times the cycles of one alone."""


@dataclass(frozen=True, slots=True)
class BatchCost:
    """Cycles, and bytes over the bus, of a whole batch."""

    cycles: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch in RTL beside its prediction, and the result of the comparison with ONNX Runtime."""

    network: str
    images: int
    cycles: int
    predicted: int
    verdict: str

    @property
    def error(self) -> float:
        """Of the prediction, relative."""
        return self.predicted / self.cycles - 1


Predictions = Mapping[tuple[str, int], BatchCost]
"""Costs by network and images."""


def batches_page(predictions: Predictions, runs: Sequence[CheckedBatch]) -> str:
    """Return the page's text."""
    networks = list(dict.fromkeys(network for network, _ in predictions))
    costs = [[network, *(_shown(predictions, network, images) for images in BATCHES),
              *(digits(round(predictions[network, images].bytes / images)) for images in (BATCHES[0], BATCHES[-1]))]
             for network in networks]
    checked = [[each.network, str(each.images), digits(each.cycles), digits(round(each.cycles / each.images)),
                digits(each.predicted), f"{each.error:+.2%}", each.verdict] for each in runs]
    return render(
        _TEMPLATE, machine=MACHINE, slower=f"{SLOWER - 1:.0%}",
        costs=table(["network", *(f"N = {images}" for images in BATCHES),
                     *(f"bytes per image, N = {images}" for images in (BATCHES[0], BATCHES[-1]))], costs, left=1),
        runs=table(["network", "N", "cycles in RTL", "per image", "predicted", "error", "comparison with ONNX Runtime"],
                   checked, left=1))


def _shown(predictions: Predictions, network: str, images: int) -> str:
    """Return the cycles per image, and what part they are of those of one image alone."""
    each = predictions[network, images].cycles / images
    return f"{digits(round(each))} ({each / predictions[network, 1].cycles:.2f})"


def predict(networks: Sequence[str], store: FigureStore, steps: Steps) -> dict[tuple[str, int], BatchCost]:
    """Return the cycle model's predictions for every network and batch."""
    found = {}
    for name in networks:
        path = find_model(name, steps).path
        for images in BATCHES:
            def make(name: str = name, images: int = images) -> dict[str, int]:
                with steps.step(f"Predicting a batch of {images} of {name}"):
                    report = PredictedNetwork.named(name, Options(batch=images)).predict(design_of(MACHINE))
                return {"cycles": report.cycles,
                        "bytes": sum(layer.bytes_read + layer.bytes_written for layer in report.layers)}

            found[name, images] = BatchCost(**store.get(f"batch of {images} predicted on {MACHINE}", path, make))
    return found


def check(batches: Sequence[tuple[str, int]], store: FigureStore, steps: Steps) -> list[CheckedBatch]:
    """Return the runs in RTL; those of unchanged sources are kept."""
    found = []
    for name, images in batches:
        source = find_model(name, steps)

        def make(source: Any = source, images: int = images) -> dict[str, Any]:
            run = run_model(source, PRESETS[MACHINE], "rtl", None, options=Options(batch=images),
                            run=RunOptions(steps=steps))
            return {"cycles": run.report.cycles, "predicted": run.report.predicted_cycles,
                    "verdict": str(run.comparison) if run.comparison.matches else f"**no**: {run.comparison}"}

        found.append(CheckedBatch(name, images, **store.get(f"batch of {images} in RTL on {MACHINE}", source.path,
                                                            make)))
    return found


def main() -> int:
    """Write the page; return 1 if an image of a batch is slower than alone, or a tensor differs from ONNX Runtime's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="the page to write")
    parser.add_argument("--fresh", action="store_true", help="run again what has been run before")
    given = parser.parse_args()
    try:
        require_place(given.page)
    except InputError as error:
        parser.error(error.sentence)
    steps = Steps()
    store = FigureStore.open(fresh=given.fresh)
    predictions = predict(NETWORKS, store, steps)
    runs = check([*((name, images) for name in CHECKED for images in BATCHES), *CHECKED_ONCE.items()], store, steps)
    write_file(given.page, with_origin(batches_page(predictions, runs), "make batches").encode())
    slower = any(cost.cycles > SLOWER * images * predictions[name, 1].cycles
                 for (name, images), cost in predictions.items())
    return int(slower or any("**no**" in each.verdict for each in runs))


if __name__ == "__main__":
    sys.exit(main())
