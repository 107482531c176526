"""Remarks on a partly quantised model: what it leaves in float, its cost, and what the option that mends it did."""

from collections.abc import Sequence
from typing import Protocol

from tilewright.compiler.compile import compile_file
from tilewright.compiler.network.options import Options
from tilewright.errors import Error
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_layer_cycles
from tilewright.runtime.model_source import ModelSource

__all__ = ["float_remarks", "slower_remarks"]

_NAMED = 3
_SLOWER = 1.01
"""Cycles with samples by those without: less is not said."""


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


def slower_remarks(source: ModelSource, cycles: int, machine: Machine, timing: MemoryTiming | None, options: Options,
                   *, outputs_only: bool) -> tuple[str, ...]:
    """Return a sentence on a model completed with samples that takes more cycles than its file by itself; or none.

    Nothing is said of a file that is not compiled by itself.
    """
    if source.completes is None:
        return ()
    try:
        compiled = compile_file(source.completes, machine, keep_tensors=not outputs_only, options=options)
        each, behind = predict_layer_cycles(job_of_compiled(compiled, source.completes.stem),
                                            timing or MemoryTiming.default(machine))
    except Error:
        return ()
    alone = sum(each) + behind
    if cycles <= _SLOWER * alone:
        return ()
    remark = (f"--calibrate makes {source.completes.name!r} slower: {cycles:,} cycles, and {alone:,} without it; leave "
              "the option out where its floats may stay")
    return (remark,)
