"""The baselines beside the networks: so far plain C, -O3, on the host core alone, in the same simulator."""

from dataclasses import asdict, dataclass
from typing import Any

from tilewright.compiler.pipelines import compile_network
from tilewright.runtime.accounting import TECHNOLOGY
from tilewright.runtime.bench.runs import Store
from tilewright.runtime.evaluate import evaluate_baseline
from tilewright.runtime.models import model_file
from tilewright.runtime.progress import Steps
from tilewright.sim.actions import core_actions
from tilewright.sim.energy import Technology, estimate

MOST_MACS = 100_000_000
"""Of a network that is run whole: ten minutes of simulation, at four cycles per MAC."""

SCALAR = "plain C -O3, CV32E40X, RV32IMC, zero-wait memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFigures:
    """What a baseline took for a network; the energy charges neither its loads nor its stores, in its favour."""

    name: str
    cycles: int
    instructions: int
    energy_uj: float
    energy_low_uj: float
    energy_high_uj: float


def baselines_of(network: str, store: Store, steps: Steps) -> tuple[BaselineFigures, ...]:
    """Return the figures of ``network`` by each baseline, the scalar one first; none if it would take too long.

    Raises
    ------
    InputError, RunError
        As `runtime.evaluate.evaluate_baseline` does.
    """
    model = model_file(network, steps)
    if compile_network(model).macs > MOST_MACS:
        return ()

    def make() -> dict[str, Any]:
        result = evaluate_baseline(model, None, steps=steps)
        energy = estimate(core_actions(result.cycles, result.instructions), Technology.load(TECHNOLOGY))
        return asdict(BaselineFigures(
            name=SCALAR, cycles=result.cycles, instructions=result.instructions, energy_uj=energy.total_uj,
            energy_low_uj=energy.low_uj, energy_high_uj=energy.high_uj))

    return (BaselineFigures(**store.get(SCALAR, model, make)),)
