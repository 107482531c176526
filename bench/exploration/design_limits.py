"""Limits: upper or lower bounds on a measure of a design, such as ``mult18<=156``."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tilewright.errors import InputError, nearest

__all__ = ["Limit", "LimitError", "limit_of"]

_LIMIT = re.compile(r"\s*([A-Za-z][\w.-]{0,79})\s*(<=|>=|<|>|=+|≤|≥)\s*([0-9_]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)"
                    r"\s*([kM]|KiB|MiB)?\s*")
_UNITS = {None: 1.0, "k": 1e3, "M": 1e6, "KiB": 1024.0, "MiB": 1024.0 ** 2}
_SIGNS = {"<=": "<=", "<": "<=", "≤": "<=", ">=": ">=", ">": ">=", "≥": ">="}


class LimitError(InputError):
    """A limit cannot be read, or applies to a measure that no design has; the message lists the allowed ones."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of a measure.

    Attributes
    ----------
    measure : str
        A key of what `bench.exploration.design_cost` finds.
    sign : str
        ``<=`` or ``>=``.
    bound : float
    """

    measure: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.measure}{self.sign}{self.bound:.12g}"

    def violation(self, measures: Mapping[str, float]) -> float:
        """Return how far a design is beyond the bound, as a part of the bound; at most 0 where it keeps it."""
        beyond = measures[self.measure] - self.bound if self.sign == "<=" else self.bound - measures[self.measure]
        return beyond / max(abs(self.bound), 1e-9)

    def reason(self, measures: Mapping[str, float]) -> str:
        """Return a sentence about a design that violates the limit."""
        return f"{self.measure} is {measures[self.measure]:.6g}, and the limit is {self}"


def limit_of(text: str, measures: Collection[str]) -> Limit:
    """Return the limit that ``text`` states.

    Raises
    ------
    LimitError
        If it states none, or one of no measure in ``measures``.
    """
    match = _LIMIT.fullmatch(text) if len(text) <= 200 else None
    if match is None or match[2] not in _SIGNS:
        raise LimitError(f"Limit must be a measure, <= or >=, and a number, such as mult18<=156, not {text!r}")
    name, bound = match[1].lower(), float(match[3]) * _UNITS[match[4]]
    if name not in measures:
        raise LimitError(f"Limit must be of one of {', '.join(measures)}, not {match[1]!r}{nearest(name, measures)}")
    if not math.isfinite(bound):
        raise LimitError(f"Limit must have a finite bound, not {match[3]!r}")
    return Limit(name, _SIGNS[match[2]], bound)
