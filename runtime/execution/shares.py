"""Counts of each layer: of layers that are computed band by band together, each one's share of what was counted.

Such layers take turns, and their records come only when they have ended: what was counted up to the last of them is
that of all. Every count is shared out in proportion to the cycles that the compiler predicts for each, so the shares
add up to what was counted.
"""

from collections.abc import Iterator, Mapping, Sequence

from tilewright.runtime.execution.job import JobLayer
from tilewright.runtime.execution.records import CAUSES, Counts, differences

__all__ = ["groups_of", "layer_counts", "share_groups", "share_out"]


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """Return whole shares of ``total`` in proportion to ``weights``; they add up to it."""
    shares, given, seen = [], 0, 0
    for weight in weights:
        seen += weight
        share = total * seen // sum(weights) - given
        shares.append(share)
        given += share
    return shares


def groups_of(layers: Sequence[JobLayer]) -> Iterator[range]:
    """Yield the layers that are computed band by band together, each group as a range of their numbers."""
    first = 0
    while first < len(layers):
        stop = first + 1
        while layers[first].group and stop < len(layers) and layers[stop].group == layers[first].group:
            stop += 1
        if stop > first + 1:
            yield range(first, stop)
        first = stop


def share_groups(layers: Sequence[JobLayer], counts: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """Return ``counts``, of each layer and of what comes behind them, with those of groups shared out."""
    found = [dict(each) for each in counts]
    for group in groups_of(layers):
        weights = [max(1, layers[index].predicted_cycles) for index in group]
        for name in found[group.start]:
            for index, share in zip(group, share_out(sum(counts[each][name] for each in group), weights), strict=True):
                found[index][name] = share
    return found


def layer_counts(layers: Sequence[JobLayer], records: Sequence[Counts]) -> list[Counts]:
    """Return the counts of each layer, from the counters at the end of each.

    Raises
    ------
    SimulationError
        If the causes of a layer's cycles do not add up to its cycles.
    """
    found = share_groups(layers, differences(records))
    for group in groups_of(layers):
        for index in group:
            # Rounded one by one, the causes would not add up to the cycles.
            found[index]["cycles"] = sum(found[index][name] for name in CAUSES)
    return found
