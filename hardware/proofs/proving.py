"""Prove one property: the assertions hold, each cover is reached, and each mutant is refuted."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.proofs.properties import Property
from tilewright.hardware.proofs.proved_designs import Mutant
from tilewright.hardware.proofs.unrolled_model import ProofError, UnrolledModel, transition_system
from tilewright.tools.templates import render

__all__ = ["ProofRow", "processor_seconds", "prove"]


@dataclass(frozen=True, slots=True)
class ProofRow:
    """The result of a property's proof.

    Attributes
    ----------
    engine
        How it was tried.
    failure
        The reason why it is not proved; empty if it is, with every cover reached and every mutant refuted.
    seconds
        Of the processor, for everything.
    covers
        How many covers were reached, and within how many steps.
    mutants
        Names of the mutants refuted.
    """

    name: str
    claim: str
    engine: str
    failure: str
    seconds: float
    covers: str
    mutants: tuple[str, ...]


def processor_seconds() -> float:
    """Return what this process and its children have used of the processor, which other work does not change."""
    return sum(os.times()[:4])


def prove(wanted: Property, *, seconds: float, progress: Callable[[str], None] = lambda _: None) -> ProofRow:
    """Return the result for ``wanted``; the solver has ``seconds`` per question, and ``progress`` is told of each."""
    start = processor_seconds()
    refuted: list[str] = []
    covers, failure = "", ""
    try:
        progress(f"{wanted.name}: holds")
        _hold(wanted, seconds)
        progress(f"{wanted.name}: covers")
        covers = _cover(wanted, seconds)
        for mutant in wanted.mutants:
            progress(f"{wanted.name}: mutant: {mutant.name}")
            _refute(wanted, mutant, seconds)
            refuted.append(mutant.name)
    except ProofError as error:
        failure = str(error)
    engine = f"every state, {wanted.bound} steps" if wanted.pipeline else "induction"
    return ProofRow(wanted.name, wanted.claim, engine, failure, processor_seconds() - start, covers, tuple(refuted))


def _system(wanted: Property, mutant: Mutant | None = None) -> str:
    properties = render(Path(__file__).with_name(wanted.source), **wanted.values())
    return transition_system(wanted.design.verilog(mutant), properties, exposed=wanted.exposed,
                             any_start=wanted.pipeline)


def _hold(wanted: Property, seconds: float) -> None:
    """Raise ProofError unless the assertions hold in every state that can be reached."""
    system = _system(wanted)
    if _first_failure(UnrolledModel(system, initial=True, seconds=seconds),
                      wanted.bound if wanted.pipeline else 1) is not None:
        raise ProofError(f"Property {wanted.name!r} must hold, and does not")
    if wanted.pipeline:
        return
    step = UnrolledModel(system, initial=False, seconds=seconds)
    step.require_false("first")     # the base has been through the first two states
    step.step(holds=True)
    if step.can_fail():
        raise ProofError(f"Property {wanted.name!r} must follow from itself one step before, and does not")


def _cover(wanted: Property, seconds: float) -> str:
    """Return how many covers are reached and when the last of them is; raise ProofError if one is not."""
    model = UnrolledModel(_system(wanted), initial=True, seconds=seconds)
    missing = model.covers()
    total = len(missing)
    while missing:
        missing -= model.reached()
        if not missing:
            break
        if model.last == wanted.bound:
            raise ProofError(f"Property {wanted.name!r} must reach its {total} covers in {wanted.bound} steps, and "
                             f"misses {len(missing)}")
        model.step(holds=False)
    if not total:
        raise ProofError(f"Property {wanted.name!r} must have a cover that shows that it is not empty; it has none")
    return f"{total} in {model.last} steps"


def _refute(wanted: Property, mutant: Mutant, seconds: float) -> None:
    """Raise ProofError unless the bug of ``mutant`` violates an assertion."""
    model = UnrolledModel(_system(wanted, mutant), initial=True, seconds=seconds)
    if _first_failure(model, wanted.bound) is None:
        raise ProofError(f"Property {wanted.name!r} must be violated by the mutant {mutant.name!r} in {wanted.bound} "
                         "steps, and is not")


def _first_failure(model: UnrolledModel, bound: int) -> int | None:
    """Return the first step in which an assertion can be violated; None if none is within ``bound``."""
    while True:
        if model.can_fail():
            return model.last
        if model.last == bound:
            return None
        model.step(holds=True)
