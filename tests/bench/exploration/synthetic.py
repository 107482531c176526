"""Workers and spaces for tests of the search itself: designs whose cost is a formula, so that many cost nothing."""

from concurrent.futures import Future

from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.bench.exploration.design_cost import DesignOutcome, Verdict
from tilewright.bench.exploration.design_limits import limit_of
from tilewright.bench.exploration.exploration_study import StudySetup
from tilewright.bench.exploration.space import Space
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_flags import design_of

__all__ = ["TARGET", "FormulaWorkers", "setup_for", "space_of"]

TARGET = AreaTarget("ecp5-85k")


def space_of(**axes):
    """Return a space of these axes around `base`, whose array multiplies for each product."""
    base = design_of("base,array=winograd")
    return Space(name="small", base=base, axes={key: tuple(values) for key, values in axes.items()})


def setup_for(space, sampler="nsga2", limits=(), objectives=("cycles", "area"), seed=0):
    """Return an exploration of a space; ``limits`` are texts."""
    measures = ("cycles", "time", "energy", "area", "energy-delay", *TARGET.measures)
    return StudySetup({"net": 1.0}, space, objectives, tuple(limit_of(text, measures) for text in limits),
                      TARGET.name, sampler, seed)


class Lost(Exception):
    """Such as a worker's end."""


class FormulaWorkers:
    """Workers that answer at once; those of ``dying`` designs end instead, so many times."""

    lost = (Lost,)
    width = 2

    def __init__(self, dying: dict[int, int] | None = None) -> None:
        self.dying = dying or {}
        self.asked: list[Design] = []

    def submit(self, design: Design) -> Future[DesignOutcome]:
        """Return the cost of a design, by a formula."""
        self.asked.append(design)
        future: Future[DesignOutcome] = Future()
        number = int(design.machine.name.rpartition("-")[2])
        if self.dying.get(number, 0):
            self.dying[number] -= 1
            future.set_exception(Lost("gone"))
            return future
        size = design.machine
        cycles = 1e6 / size.lanes / size.bus_bytes + 1e9 / size.activation_bytes
        found = {"cycles": cycles, "time": cycles / 1e5, "energy": cycles + size.weight_bytes / 100,
                 "energy-delay": cycles ** 2, "net.cycles": cycles, **TARGET.predict(size)}
        future.set_result(DesignOutcome(Verdict.good, found))
        return future

    def close(self) -> None:
        """Do nothing."""
