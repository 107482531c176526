"""The host core's share of a network's cycles: its size, its layers, and what would change it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.compiler.kernels.ways_out import way_out

__all__ = ["CoreCause", "CorePart", "CoreShare", "core_share"]

_WORTH_A_WORD = 0.1
"""Of all cycles: from there on the causes are told without being asked for."""


@dataclass(frozen=True, slots=True)
class CorePart:
    """A layer that the host core computes: its name, ONNX's operator, why it is the core's, and its cycles."""

    name: str
    operator: str
    reason: str
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreCause:
    """Layers of one operator that the core computes for one reason, the largest first.

    ``share`` is of all cycles; ``way_out`` tells what to change in the model or the options.
    """

    operator: str
    reason: str
    way_out: str
    layers: tuple[str, ...]
    cycles: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreShare:
    """The core's cycles, of how many, in how many layers, and its causes, the largest first."""

    cycles: int
    total: int
    layers: int
    causes: tuple[CoreCause, ...]

    @property
    def share(self) -> float:
        """The core's part of all cycles, 0 to 1."""
        return self.cycles / max(self.total, 1)

    @property
    def is_large(self) -> bool:
        """Whether it is so large that the causes are worth a word."""
        return self.share > _WORTH_A_WORD

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return {"cycles": self.cycles, "share": self.share, "layers": self.layers,
                "causes": [asdict(cause) | {"layers": list(cause.layers)} for cause in self.causes]}


def core_share(parts: Iterable[CorePart], total: int) -> CoreShare:
    """Return the share of the core's layers, ``parts``, in ``total`` cycles."""
    groups: dict[tuple[str, str], list[CorePart]] = {}
    for part in sorted(parts, key=lambda each: -each.cycles):
        groups.setdefault((part.operator, part.reason), []).append(part)
    causes = sorted((_cause(group, total) for group in groups.values()), key=lambda cause: -cause.cycles)
    return CoreShare(cycles=sum(cause.cycles for cause in causes), total=total,
                     layers=sum(map(len, groups.values())), causes=tuple(causes))


def _cause(group: Sequence[CorePart], total: int) -> CoreCause:
    cycles, first = sum(part.cycles for part in group), group[0]
    return CoreCause(operator=first.operator, reason=first.reason, way_out=way_out(first.operator, first.reason),
                     layers=tuple(part.name for part in group), cycles=cycles, share=cycles / max(total, 1))
