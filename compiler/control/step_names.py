"""Names of what a step of a recurrence computes: tensors of one kind have one name but for the number of the step.

The quantiser gives all tensors of a kind the same scale, so that every step is the same function.
"""

import re
from collections.abc import Iterable

__all__ = ["kind_of", "kinds_of", "step_name"]

_STEP = re.compile(r"(.+)@step\d+", re.DOTALL)


def step_name(kind: str, step: int) -> str:
    """Return the name of a tensor or node of a step, counted from 0."""
    return f"{kind}@step{step}"


def kind_of(name: str) -> str | None:
    """Return the kind of a tensor of a step, of steps within steps too; None for any other tensor."""
    kind = None
    while (found := _STEP.fullmatch(name)) is not None:
        kind = name = found[1]
    return kind


def kinds_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the tensors of each kind that has several, in the order given."""
    found: dict[str, list[str]] = {}
    for name in names:
        if (kind := kind_of(name)) is not None:
            found.setdefault(kind, []).append(name)
    return {kind: each for kind, each in found.items() if len(each) > 1}
