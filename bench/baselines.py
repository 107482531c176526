"""The baselines beside the networks: C, -O3, on a core alone, in the same simulator; plain and with XPULP's SIMD."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tilewright.bench.figure_store import FigureStore
from tilewright.energy.baseline_energy import energy_of_baseline
from tilewright.energy.energies import EnergyEstimate
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.runtime.baseline.core_alone import BaselineResult
from tilewright.runtime.compared_run import run_model_alone
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Steps

__all__ = ["TITLES", "BaselineFigures", "baselines_of"]

TITLES: Mapping[CoreName, str] = {
    HOST_CORE: "plain C -O3, CV32E40X, RV32IMC, zero-wait memory",
    XPULP_CORE: "C -O3 with XPULP SIMD, CV32E40P, RV32IMC, zero-wait memory"}
"""The baselines, the scalar one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFigures:
    """Figures of a baseline for a network.

    Attributes
    ----------
    core : str
    cycles, instructions, macs : int
    measured_layers, layers : int
        How many layers were run whole, of how many; of the others, parts were run and scaled.
    matches : bool
        What was run equals the integer reference.
    """

    core: CoreName
    cycles: int
    instructions: int
    macs: int
    measured_layers: int
    layers: int
    matches: bool

    @property
    def energy(self) -> EnergyEstimate:
        """At default prices, without loads and stores, in the baseline's favour; see `energy.baseline_energy`."""
        return energy_of_baseline(self)

    @property
    def in_parts(self) -> bool:
        """Tell whether cycles, instructions and energy are scaled from parts."""
        return self.measured_layers < self.layers

    @property
    def name(self) -> str:
        """Program, core, instruction set, memory, and whether the figures are scaled."""
        return TITLES[self.core] + (", in parts" if self.in_parts else "")


def baselines_of(network: str, store: FigureStore, steps: Steps) -> tuple[BaselineFigures, ...]:
    """Return the figures of ``network`` by each baseline, in the order of ``TITLES``.

    Raises
    ------
    CompileError, InputError, SimulationError
        As `runtime.compared_run.run_model_alone` does.
    """
    source = find_model(network, steps)

    def figures(core: CoreName) -> BaselineFigures:
        return BaselineFigures(**store.get(f"baseline {core}", source.path, lambda: asdict(
            _figures_of_baseline(run_model_alone(source, None, core=core, steps=steps)))))

    return tuple(figures(core) for core in TITLES)


def _figures_of_baseline(result: BaselineResult) -> BaselineFigures:
    """Return the figures of a run."""
    return BaselineFigures(
        core=result.core, cycles=result.cycles, instructions=result.instructions,
        macs=sum(layer.macs for layer in result.layers),
        measured_layers=sum(layer.origin == "whole" for layer in result.layers), layers=len(result.layers),
        matches=result.matches)
