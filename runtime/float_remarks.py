"""Remarks on a partly quantised model: the operators left in float, their cost, and the option that mends it."""

from collections.abc import Sequence
from typing import Protocol

from tilewright.runtime.model_source import ModelSource

__all__ = ["float_remarks"]

_NAMED = 3


class _Costed(Protocol):
    """A layer of a report or of a check: ``operator`` is ONNX's if the host core computes it, else empty."""

    @property
    def operator(self) -> str: ...

    @property
    def onnx_nodes(self) -> tuple[str, ...]: ...

    @property
    def cycles(self) -> int: ...


def float_remarks(source: ModelSource, layers: Sequence[_Costed]) -> tuple[str, ...]:
    """Return a sentence on the layers that the core computes since they are in float; none if there are none."""
    found = [layer for layer in layers if layer.operator and set(layer.onnx_nodes) & source.in_float]
    cycles = sum(layer.cycles for layer in found)
    if not cycles:
        return ()
    costly = sorted(found, key=lambda layer: -layer.cycles)
    kinds = list(dict.fromkeys(layer.operator for layer in costly))
    listed = ", ".join(kinds[:_NAMED]) + (f" and {len(kinds) - _NAMED} more" if len(kinds) > _NAMED else "")
    share = cycles / max(1, sum(layer.cycles for layer in layers))
    said = "1 layer is" if len(found) == 1 else f"{len(found)} layers are"
    remark = (f"{said} computed in float beside quantised ones ({listed}), {share:.0%} of all cycles; --calibrate "
              f"FILE, with samples of the inputs, quantises {'it' if len(found) == 1 else 'them'} too")
    return (remark,)
