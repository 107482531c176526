"""The lines with which ``check`` and ``run`` begin: the host core's share of the cycles, its causes, what to change."""

from collections.abc import Iterator

from rich.console import Console

from tilewright.cli.tables.text import plain
from tilewright.runtime.execution.core_share import CoreCause, CoreShare

__all__ = ["core_share_lines", "print_core_share"]

_CAUSES = 5
_NAMED = 0.01
"""Causes of a smaller part of all cycles are not named one by one."""


def print_core_share(found: CoreShare, out: Console) -> None:
    """Print the lines."""
    for line in core_share_lines(found):
        out.print(plain(line), highlight=False, soft_wrap=True)


def core_share_lines(found: CoreShare) -> Iterator[str]:
    """Yield a line on the core's share, and if it is large one for each of its causes."""
    if not found.layers:
        yield f"Core: 0 % of {amount(found.total)} cycles; the coprocessor computes every layer"
        return
    yield (f"Core: {percent(found.share)} of {amount(found.total)} cycles, in {found.layers} "
           f"{'layer' if found.layers == 1 else 'layers'}")
    if not found.is_large:
        return
    named = [cause for cause in found.causes if cause.share >= _NAMED][:_CAUSES]
    yield from map(_line, named)
    if rest := found.causes[len(named):]:
        cycles, layers = sum(cause.cycles for cause in rest), sum(len(cause.layers) for cause in rest)
        yield f"  others: {amount(cycles)} cycles, in {layers} {'layer' if layers == 1 else 'layers'}"


def _line(cause: CoreCause) -> str:
    more = f" and {len(cause.layers) - 1} more" if len(cause.layers) > 1 else ""
    return (f"  {cause.layers[0]}{more} ({cause.operator}): {amount(cause.cycles)} cycles, "
            f"{percent(cause.share)}; {cause.reason}: {cause.way_out}")


def amount(count: int) -> str:
    """Return a number of cycles with two or three digits and its unit."""
    for unit, name in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if count >= unit:
            value = count / unit
            return f"{value:.0f}{name}" if value >= 100 else f"{value:.1f}{name}"
    return str(count)


def percent(share: float) -> str:
    """Return a share in per cent: with a decimal below 10."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"
