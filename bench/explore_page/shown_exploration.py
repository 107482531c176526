"""Contents of the page of an exploration: designs with parameters and measures, the front, and what to compare with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Bound", "ReferenceDesign", "ShownDesign", "ShownExploration"]

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDesign:
    """A design that was tried and is within the limits.

    Attributes
    ----------
    number : int
        Of its trial.
    name : str
    on_front : bool
    chosen : dict of str to value
        Its value on each axis of the space.
    measures : dict of str to float
    command : str
        Runs a network on it.
    measured : dict of str to str
        What was measured in hardware, in words, by ``cycles`` and ``area``; empty where nothing was.
    """

    number: int
    name: str
    on_front: bool
    chosen: Mapping[str, Value]
    measures: Mapping[str, float]
    command: str
    measured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReferenceDesign:
    """A design to compare with, such as a preset: its name and its measures."""

    name: str
    measures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit: a measure, ``<=`` or ``>=``, and a number."""

    measure: str
    sign: str
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExploration:
    """All that the page shows.

    Attributes
    ----------
    title, command, target : str
    objectives : dict of str to str
        Meaning by name.
    units : dict of str to str
        Of measures and parameters that have one.
    axes : dict of str to sequence
        Values by axis of the space.
    designs : sequence of ShownDesign
        Within the limits, those on the front from the best in the first objective on.
    references : sequence of ReferenceDesign
    bounds : sequence of Bound
    verdicts : dict of str to int
        Trials by how they ended.
    importances : dict of str to dict
        By objective and axis: share of the variance, and the low and the high end of what it may be.
    """

    title: str
    command: str
    target: str
    objectives: Mapping[str, str]
    units: Mapping[str, str]
    axes: Mapping[str, Sequence[Value]]
    designs: Sequence[ShownDesign]
    references: Sequence[ReferenceDesign]
    bounds: Sequence[Bound]
    verdicts: Mapping[str, int]
    importances: Mapping[str, Mapping[str, tuple[float, float, float]]]

    @property
    def front(self) -> list[ShownDesign]:
        """The designs on the front, in order."""
        return [each for each in self.designs if each.on_front]

    def titled(self, name: str) -> str:
        """Return a measure or parameter with its unit."""
        words = name.replace("_", " ")
        return f"{words}, {self.units[name]}" if name in self.units else words
