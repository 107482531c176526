"""Accuracy over a data set: how often each of the three models is right, and on which images they differ."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tilewright.runtime.accuracy.answers import TOP, Answers, Column
from tilewright.runtime.design.design import Design

__all__ = ["AccuracyReport", "Parting"]


@dataclass(frozen=True, slots=True)
class Parting:
    """The images on which two of the three disagree."""

    first: Column
    second: Column
    images: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyReport:
    """The result of an evaluation.

    Attributes
    ----------
    model, output : str
    classes : int
    engine : str
        ``values`` where no cycles were asked for; then no design was, either.
    design : Design
    answers : Answers
    labels : ndarray or None
        The right class of each image, if known.
    declared : bool
        Whether ONNX Runtime computes in float what the scores come from, so that they need not be equal to the bit.
    untrusted : str
        Why the quantised model was not run in ONNX Runtime; empty if it was.
    resumed, evaluated_now : int
        Images answered by an earlier evaluation, and by this one.
    seconds : float
        Of this one.
    notes : tuple of str
    """

    model: str
    output: str
    classes: int
    engine: str
    design: Design
    answers: Answers
    labels: np.ndarray | None
    declared: bool
    untrusted: str
    resumed: int
    evaluated_now: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those that answered, in the order in which they are shown."""
        return tuple(column for column in Column if column in self.answers.top)

    @property
    def images(self) -> int:
        """Number of evaluated images."""
        return len(self.answers.top[Column.HARDWARE])

    def right(self, column: Column, most: int) -> int:
        """Return for how many images the right class is among a column's ``most`` likeliest."""
        if self.labels is None:
            raise ValueError("Images must have labels to measure accuracy")
        return int((self.answers.top[column][:, :most] == self.labels[:, np.newaxis]).any(axis=1).sum())

    @property
    def partings(self) -> tuple[Parting, ...]:
        """Images that two columns do not see as the same class, for each two of them."""
        return tuple(Parting(first, second, tuple(map(int, np.flatnonzero(
            self.answers.top[first][:, 0] != self.answers.top[second][:, 0]))))
            for first, second in combinations(self.columns, 2))

    @property
    def unequal(self) -> tuple[int, ...]:
        """Images for which the hardware's scores are not ONNX Runtime's of the quantised model."""
        return tuple(map(int, np.flatnonzero(~self.answers.equal)))

    @property
    def matches(self) -> bool | None:
        """Whether the hardware's scores are all ONNX Runtime's, or declared to differ; None if those are not known."""
        if Column.QUANTISED not in self.answers.top:
            return None
        return self.declared or not self.unequal

    def to_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        cycles = self.answers.cycles
        return {
            "model": self.model, "output": self.output, "classes": self.classes, "images": self.images,
            "engine": self.engine, "machine": self.design.machine.name if cycles.size else None,
            "design": self.design.to_json() if cycles.size else None,
            "accuracy": None if self.labels is None else {
                column: {"top1": self.right(column, 1) / self.images}
                | ({"top5": self.right(column, TOP) / self.images} if self.classes > TOP else {})
                for column in self.columns},
            "same_class": {f"{each.first} and {each.second}": self.images - len(each.images)
                           for each in self.partings},
            "differing_images": {f"{each.first} and {each.second}": list(each.images) for each in self.partings},
            "scores": None if self.matches is None else {
                "equal": self.images - len(self.unequal), "declared": self.declared,
                "largest_difference": float(self.answers.off.max(initial=0)), "unequal_images": list(self.unequal)},
            "matches_reference": self.matches, "untrusted": self.untrusted or None,
            "cycles": None if not cycles.size else {
                "mean": float(cycles.mean()), "milliseconds": float(cycles.mean()) / (1e3 * self.design.mhz),
                "least": int(cycles.min()), "most": int(cycles.max())},
            "resumed_images": self.resumed, "seconds": round(self.seconds, 3), "notes": list(self.notes)}
