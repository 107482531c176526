"""The page docs/dram.md: the DRAM parts, their cost for each network, and the accuracy of the prediction."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.bench.cases import BenchCase
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.runs import run_case
from tilewright.errors import InputError
from tilewright.isa.dram.dram import CONTROLLER_NS, WRITE_BUFFER_BYTES, DramTiming, dram_named
from tilewright.isa.dram.parts import PARTS
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.files import require_place, write_file
from tilewright.tools.markdown import digits, table
from tilewright.tools.page_origin import with_origin
from tilewright.tools.progress import Steps
from tilewright.tools.templates import render

__all__ = ["CHECKED", "CHECKED_MEMORIES", "MACHINES", "MEMORIES", "NETWORKS", "CheckedRun", "Memory", "dram_page"]

_TEMPLATE = Path(__file__).with_name("dram_page.md.j2")

NETWORKS = ("lenet5", "lenet5_accel", "mlperf-ad", "mlperf-kws", "mlperf-resnet8", "mlperf-vww", "vgg16-32",
            "resnet18-32", "mobilenetv2-224")
CHECKED = ("lenet5", "lenet5_accel", "mlperf-kws", "mlperf-resnet8", "vgg16-32")
"""Networks that are run in RTL too."""

MACHINES = ("nano", "base")


@dataclass(frozen=True, slots=True)
class Memory:
    """A DRAM part, and the clock of the machine in megahertz."""

    part: str
    mhz: float

    @property
    def timing(self) -> MemoryTiming:
        """The timing of main memory."""
        return DramTiming.of(dram_named(self.part, self.mhz))

    def __str__(self) -> str:
        return f"{self.part}, {self.mhz:g} MHz"


MEMORIES = (Memory("sdr-133x16", 80), Memory("lpddr-400x16", 80), Memory("lpddr-400x16", 200),
            Memory("ddr3l-1600x16", 80), Memory("ddr3l-1600x16", 200))


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """A run in RTL beside its prediction, and the layers that were equal to ONNX Runtime's."""

    network: str
    machine: str
    memory: Memory
    cycles: int
    predicted: int
    verdict: str

    @property
    def error(self) -> float:
        """Of the prediction, relative."""
        return self.predicted / self.cycles - 1


CHECKED_MEMORIES = (Memory("sdr-133x16", 80), Memory("lpddr-400x16", 200), Memory("ddr3l-1600x16", 200))
"""Memories of those runs."""


Predictions = Mapping[tuple[str, str, Memory | None], int]
"""Cycles by network, machine and memory; None is the default, a fixed latency."""


def dram_page(predictions: Predictions, runs: Sequence[CheckedRun]) -> str:
    """Return the page's text."""
    places = list(dict.fromkeys((network, machine) for network, machine, _ in predictions))
    rows = []
    for network, machine in places:
        fixed = predictions[network, machine, None]
        costs = (predictions[network, machine, memory] for memory in MEMORIES)
        rows.append([network, machine, digits(fixed), *(f"{digits(each)} ({each / fixed - 1:+.1%})" for each in costs)])
    worst = max((abs(each.error) for each in runs), default=0.0)
    return render(
        _TEMPLATE, parts=_parts(), controller=f"{CONTROLLER_NS:g}", buffer=digits(WRITE_BUFFER_BYTES),
        costs=table(["network", "machine", "fixed latency", *map(str, MEMORIES)], rows, left=2),
        runs=table(["network", "machine", "memory", "cycles in RTL", "predicted", "error",
                    "layers equal to ONNX Runtime"],
                   [[each.network, each.machine, str(each.memory), digits(each.cycles), digits(each.predicted),
                     f"{each.error:+.2%}", each.verdict] for each in runs], left=3),
        worst=f"{worst:.2%}", count=len(runs))


def _parts() -> str:
    """Return the table of parts: a column for each."""
    heads = ["", *PARTS]
    names = {"device": "data sheet", "banks": "banks", "row_bytes": "bytes of a row",
             "access_bytes": "bytes per access", "access_ns": "its time on the pins", "t_cl": "CL", "t_cwl": "CWL",
             "t_rcd": "tRCD", "t_rp": "tRP", "t_ras": "tRAS", "t_rtp": "tRTP", "t_wr": "tWR", "t_wtr": "tWTR",
             "t_rtw": "read to write", "t_rrd": "tRRD", "t_faw": "tFAW", "t_refi": "tREFI", "t_rfc": "tRFC"}
    rows = [[said, *(_shown(getattr(part, name)) for part in PARTS.values())] for name, said in names.items()]
    rows.append(["MB/s at most", *(digits(round(1000 * part.access_bytes / part.access_ns))
                                   for part in PARTS.values())])
    return table(heads, rows, left=1)


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def predict(networks: Sequence[str], store: FigureStore, steps: Steps) -> dict[tuple[str, str, Memory | None], int]:
    """Return the cycle model's predictions for every network, machine and memory."""
    found: dict[tuple[str, str, Memory | None], int] = {}
    for name in networks:
        network = PredictedNetwork.named(name, steps=steps)
        path = find_model(name, steps).path
        for machine in MACHINES:
            for memory in (None, *MEMORIES):
                def make(machine: str = machine, memory: Memory | None = memory,
                         network: PredictedNetwork = network) -> dict[str, int]:
                    design = design_of(machine) if memory is None else design_of(
                        machine, memory=f"dram={memory.part}", clock=f"{memory.mhz:g}MHz")
                    return {"cycles": network.predict(design).cycles}

                found[name, machine, memory] = store.get(f"prediction {machine} {memory}", path, make)["cycles"]
    return found


def check(networks: Sequence[str], store: FigureStore, steps: Steps) -> list[CheckedRun]:
    """Return the runs in RTL, each beside its prediction; runs of unchanged sources are kept."""
    found = []
    for name in networks:
        for machine in MACHINES:
            for memory in CHECKED_MEMORIES:
                simulated, predicted = (
                    run_case(BenchCase(network=name, machine=PRESETS[machine], engine=engine, memory=memory.timing),
                             store, steps) for engine in ("rtl", "fast"))
                found.append(CheckedRun(name, machine, memory, simulated.cycles, predicted.cycles, simulated.verdict))
    return found


def main() -> int:
    """Write the page; return 1 if a prediction is off by more than 5 % or a layer differs from ONNX Runtime's."""
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
    runs = check(CHECKED, store, steps)
    write_file(given.page, with_origin(dram_page(predict(NETWORKS, store, steps), runs), "make dram").encode())
    return int(any(abs(each.error) > 0.05 or "no" in each.verdict for each in runs))


if __name__ == "__main__":
    sys.exit(main())
