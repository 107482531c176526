"""The cost of a network with chosen bits on machines: exact predictions of the program that is compiled for each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.bench.precision.bits_choice import BitsChoice
from tilewright.bench.precision.bits_judge import BitsError
from tilewright.errors import Error
from tilewright.runtime.design.design import Design
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.precision.quantised_file import BitsModel
from tilewright.runtime.predicted_network import PredictedNetwork

__all__ = ["MEASURES", "BitsCost", "BitsPoint", "machines_for"]

MEASURES = {
    "error": "% of images with another class than their label, or, without labels, distance of the outputs from the "
             "float model's",
    "cycles": "cycles of one run", "energy": "µJ of the same, main memory included",
    "weight_bytes": "bytes of weights and constants in main memory",
    "area": "of the machine on its target, as predicted",
}
"""Measures of a point, all to be small."""


@dataclass(frozen=True, slots=True)
class BitsPoint:
    """A choice of bits on a machine, and its measures."""

    choice: BitsChoice
    design: Design
    error: BitsError
    measures: dict[str, float]


@dataclass(frozen=True, slots=True)
class BitsCost:
    """Says what a choice costs on machines. It may be pickled.

    Attributes
    ----------
    model : BitsModel
    designs : tuple of Design
        Machines without units that a choice may need.
    target : AreaTarget
    outputs_only : bool
        As ``run --outputs-only``.
    folder : Path
        Where models are written.
    """

    model: BitsModel
    designs: tuple[Design, ...]
    target: AreaTarget
    outputs_only: bool
    folder: Path

    def cost(self, choice: BitsChoice, error: BitsError, name: str) -> list[BitsPoint]:
        """Return the points of a choice, on each machine that can compute it; its model is written."""
        path = self.folder / f"{name}.onnx"
        onnx.save(self.model.written(choice.bits(self.model.layers)), path)
        network = PredictedNetwork(ModelSource.of(path), outputs_only=self.outputs_only)
        found = []
        for design in (each for base in self.designs for each in machines_for(choice, base)):
            try:
                report, size = network.predict_with_bytes(design)
            except Error:       # the machine is too small for a layer
                continue
            measures = {"error": error.error, "cycles": float(report.cycles), "energy": report.energy.total_uj,
                        "weight_bytes": float(size)} | self.target.predict(design.machine)
            found.append(BitsPoint(choice, design, error, measures))
        return found


def machines_for(choice: BitsChoice, design: Design) -> Sequence[Design]:
    """Return a machine as it is, with wide words where a layer reads 16 bits; and the same with coded weights."""
    own, words = design.machine, design.machine.wide_words or choice.words
    machine = replace(own, wide_words=words, float_requantise=own.float_requantise or words)
    both = dict.fromkeys([machine, replace(machine, coded_weights=True)])
    return [replace(design, machine=each) for each in both]
