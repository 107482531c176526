"""Time of a design without values: seconds of a processor for each, the network read once.

``python -m tilewright.bench.design_speed resnet18-32 --machine base --machine base,lanes=8`` prints, for each design,
the cycles and the seconds that `runtime.predicted_network.PredictedNetwork.predict` takes.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.isa.machine import PRESETS
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.predicted_network import PredictedNetwork

__all__ = ["DesignTime", "main", "times"]


@dataclass(frozen=True, slots=True)
class DesignTime:
    """A design, its cycles, and the seconds of a processor that finding them took."""

    design: str
    cycles: int
    seconds: float


def times(network: PredictedNetwork, designs: Iterable[str]) -> Iterator[DesignTime]:
    """Yield the time of each design, as ``--machine`` states it."""
    for text in designs:
        design = design_of(text)
        began = time.process_time()
        report = network.predict(design)
        yield DesignTime(text, report.cycles, time.process_time() - began)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the time of each design of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.bench.design_speed", description=__doc__)
    parser.add_argument("model", nargs="?", default="resnet18-32")
    parser.add_argument("--machine", action="append", metavar="DESIGN")
    given = parser.parse_args(arguments)
    began = time.process_time()
    network = PredictedNetwork.named(given.model)
    print(f"{network.name}: read, quantised and lowered in {time.process_time() - began:.2f} s")
    # What is imported and read once in a process is no design's.
    network.predict(design_of("nano"))
    for each in times(network, given.machine or list(PRESETS)):
        print(f"{each.design}: {each.cycles:,} cycles, {each.seconds:.3f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
