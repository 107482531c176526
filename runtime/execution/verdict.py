"""The result of comparing a tensor with ONNX Runtime's, and the counts of many: the one type that says it.

Nothing is equal that was not compared: a verdict is ``equal`` only of a tensor of which every element was.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["KINDS", "Judged", "Kind", "TensorVerdict", "count_text", "counts", "headline", "not_compared"]

Kind = Literal["equal", "declared", "differs", "not compared"]
"""``declared``: off where the layer says beforehand that it may be, as ONNX Runtime computes in float there, and as
far as the verdict says; ``differs``: off where it must not be."""

KINDS: tuple[Kind, ...] = ("equal", "declared", "differs", "not compared")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorVerdict:
    """The result of comparing one tensor.

    Attributes
    ----------
    kind : Kind
    elements, off : int
        Number of elements compared, and of those that are not equal.
    levels : int or None
        Largest difference of integers; None of other tensors.
    share : float or None
        Largest difference of floats, relative to the largest value of their tensor; None of other tensors.
    alone : bool
        Equal when given ONNX Runtime's own inputs: an earlier layer is off, and this one is not.
    why : str
        Reason why the tensor was not compared, or may be off.
    """

    kind: Kind
    elements: int = 0
    off: int = 0
    levels: int | None = None
    share: float | None = None
    alone: bool = False
    why: str = ""

    @property
    def distance(self) -> str:
        """The largest difference, with its unit; empty if there is none."""
        if self.levels:
            return f"{self.levels} {'level' if self.levels == 1 else 'levels'}"
        if self.share == float("inf"):
            return "infinity or NaN"
        return f"{self.share:.1g} of the range" if self.share else ""

    def __str__(self) -> str:
        if self.kind == "not compared":
            return f"not compared: {self.why}" if self.why else "not compared"
        if self.kind == "equal":
            return "equal"
        said = f"off by up to {self.distance} in {self.off:,} of {self.elements:,} elements"
        if self.alone:
            return f"{said}, all of it from earlier layers"
        if self.kind == "differs":
            return said
        return f"{said}, as declared: {self.why}" if self.why else f"{said}, as declared"

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a dict of words and numbers; the keys are a contract."""
        share = self.share if self.share is None or self.share < float("inf") else None
        return {"verdict": self.kind, "elements": self.elements, "off": self.off, "levels": self.levels,
                "share": share, "alone": self.alone, "why": self.why}


def not_compared(why: str) -> TensorVerdict:
    """Return the verdict of a tensor that was not compared, with the reason."""
    return TensorVerdict(kind="not compared", why=why)


@dataclass(frozen=True, slots=True)
class Judged:
    """A layer or an output of the model by its name, the tensor that was looked at, and the verdict."""

    name: str
    tensor: str
    verdict: TensorVerdict

    def to_json(self) -> dict[str, Any]:
        """Return the entry of a report."""
        return {"name": self.name, "tensor": self.tensor, **self.verdict.to_json()}


def counts(verdicts: Iterable[TensorVerdict]) -> dict[Kind, int]:
    """Return how many verdicts there are of each kind."""
    found = dict.fromkeys(KINDS, 0)
    for each in verdicts:
        found[each.kind] += 1
    return found


def count_text(verdicts: Iterable[TensorVerdict], what: str) -> str:
    """Return the counts in words, those of none left out: ``199 layers: 2 equal, 1 off as declared, …``."""
    found = counts(verdicts)
    words: dict[Kind, str] = {"equal": "equal", "declared": "off as declared", "differs": "off where it must not be",
                              "not compared": "not compared"}
    parts = [f"{count:,} {words[kind]}" for kind, count in found.items() if count]
    total = sum(found.values())
    return f"{total:,} {what if total != 1 else what.removesuffix('s')}: {', '.join(parts) or 'none'}"


def headline(verdicts: Iterable[TensorVerdict]) -> str:
    """Return in a few words whether all is equal: ``yes`` only if every one was compared and is equal."""
    found = counts(verdicts)
    total, compared = sum(found.values()), sum(found.values()) - found["not compared"]
    if found["differs"]:
        return "no"
    if not compared:
        return "not compared"
    if found["equal"] == total:
        return "yes"
    return f"{found['equal']:,} of {total:,}"
