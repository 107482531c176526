"""The interface through which a unit requests the counts of the performance counters."""

from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out, Signature

from tilewright.isa.counters import COUNTERS
from tilewright.rtl.stream.stages import flow

__all__ = ["walk_signature"]


def walk_signature() -> Signature:
    """Return the signature with which one asks for the counts.

    Members
    -------
    request : ``Out(1)``
        A walk shall begin as soon as none is under way; held until ``begins``.
    begins : ``In(1)``
        A walk begins in this cycle, on request or not.
    sums : ``In(flow)``
        From the second cycle after ``begins`` on, the walk's counts: ``index`` in the table, from 0 on, a counter per
        cycle, and its ``count``.
    cycles_high : ``In(32)``
        Upper half of ``cycles``: that of a walk from its second count until the second count of the next.
    """
    return Signature({
        "request": Out(1),
        "begins": In(1),
        "cycles_high": In(32),
        "sums": In(flow(StructLayout({"index": range(len(COUNTERS)), "count": 32}))),
    })
