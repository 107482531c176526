"""Our cycles beside those that Arm's compiler Vela estimates for an Ethos-U55 on the same networks.

``python -m tilewright.bench.peers docs/peers.md`` writes the page; ``tilewright bench --peers`` prints its table.
"""

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tilewright.bench.cases import BenchCase
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.peer_networks import tflite_of
from tilewright.bench.runs import run_case
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS
from tilewright.models import FOLDER, PUBLISHED
from tilewright.runtime.model_source import find_model
from tilewright.tools.files import write_file
from tilewright.tools.markdown import table
from tilewright.tools.page_origin import with_origin
from tilewright.tools.progress import Steps

__all__ = ["CAPTION", "COMPARED_NETWORKS", "MEMORIES", "PAIRS", "PeerFigures", "estimate", "main", "peers",
           "peers_table"]

COMPARED_NETWORKS = (*PUBLISHED, "mobilenetv2-224", "resnet18-224", "resnet50-224", "vgg16-224")
"""Networks that are compared."""

PAIRS = (("ethos-u55-64", "base"), ("ethos-u55-256", "large"))
"""Accelerators, and our presets with the same number of multipliers."""

MEMORIES = {"Tilewright": str(Path(__file__).with_name("ethos_u55.ini")),
            "Ethos_U55_High_End_Embedded": "Arm/vela.ini"}
"""Systems for Vela, and the file that describes each: one with our memory, and the one that Arm ships."""

CAPTION = """The cycles of the Ethos-U55 are estimates of Arm's Vela, not simulations. Its memory is set as that of
base: 20 cycles, then 8 bytes per cycle, on each of two ports, one of them for constants. The figures in brackets are
for the memory as Arm ships it (Ethos_U55_High_End_Embedded: SRAM of 8 bytes per cycle and 32 cycles, flash of 1 byte
per cycle and 64 cycles). Our cycles are predicted by engine `fast`, with one port to memory: 20 cycles, then 8 bytes
per cycle on base and 16 on large."""


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """Cycles of one network on an Ethos-U55, with each memory of ``MEMORIES``, and on our preset."""

    network: str
    peer: str
    theirs: tuple[int, ...]
    machine: str
    ours: int


def peers(networks: Iterable[str], store: FigureStore, steps: Steps) -> list[PeerFigures]:
    """Return the figures of ``networks`` on each pair of ``PAIRS``.

    Raises
    ------
    CompileError, InputError, SimulationError
        As the runs do; also if Vela or the package ``tflite`` is not installed, or Vela does not take a network.
    """
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for network in networks:
            file = _tflite_file(network, Path(scratch), steps)
            for peer, machine in PAIRS:
                with steps.step(f"{network} on {peer}, by Vela"):
                    theirs = tuple(estimate(file, peer, system, Path(scratch)) for system in MEMORIES)
                with steps.step(f"{network} on {machine}"):
                    ours = run_case(BenchCase(network=network, machine=PRESETS[machine], engine="fast"), store, steps)
                found.append(PeerFigures(network, peer, theirs, machine, ours.cycles))
    return found


def estimate(model: Path, peer: str, system: str, scratch: Path) -> int:
    """Return Vela's estimate of the cycles of a .tflite file on ``peer``, with a memory of ``MEMORIES``.

    Raises
    ------
    InputError
        If Vela is not installed, or does not take the model.
    """
    beside = Path(sys.executable).with_name("vela")
    vela = str(beside) if beside.is_file() else shutil.which("vela")
    if vela is None:
        raise InputError("Program 'vela' is needed to estimate an Ethos-U55, and is not installed: "
                         "pip install 'tilewright[peers]'")
    folder = scratch / f"{peer} {system}"
    done = subprocess.run(
        [vela, str(model), "--accelerator-config", peer, "--config", MEMORIES[system], "--system-config", system,
         "--memory-mode", "Shared_Sram", "--output-dir", str(folder)],
        capture_output=True, text=True, check=False)
    summary = folder / f"{model.stem}_summary_{system}.csv"
    if done.returncode or not summary.is_file():
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise InputError(f"Network {model.stem} must be one that Vela takes, which said {''.join(last)!r}")
    with summary.open(encoding="utf-8", newline="") as lines:
        return int(float(next(csv.DictReader(lines))["cycles_total"]))


def peers_table(found: Iterable[PeerFigures]) -> str:
    """Return the caption and a Markdown table, a row for each network and pair."""
    rows = [[each.network, each.peer, f"{each.theirs[0]:,} ({each.theirs[1]:,})", each.machine, f"{each.ours:,}",
             f"{each.ours / each.theirs[0]:.2f} ({each.ours / each.theirs[1]:.2f})"] for each in found]
    heads = ("network", "Ethos-U55", "its cycles", "ours", "our cycles", "ours / its")
    return f"{CAPTION}\n\n{table(heads, rows)}"


def _tflite_file(network: str, scratch: Path, steps: Steps) -> Path:
    """Return the .tflite file of ``network``: the published one, or one written here."""
    if network in PUBLISHED:
        return FOLDER / f"{network}.tflite"
    file = scratch / f"{network}.tflite"
    source = find_model(network, steps)
    with steps.step(f"Writing {file.name}"):
        file.write_bytes(tflite_of(compile_network(source.path)))
    return file


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    title = "# Beside an Ethos-U55\n\nVela (extra `peers`) takes minutes for each of the large networks."
    found = peers_table(peers(COMPARED_NETWORKS, FigureStore.open(), Steps()))
    write_file(given.page, with_origin(f"{title} {found}\n", "make peers").encode())


if __name__ == "__main__":
    main()
