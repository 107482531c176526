"""Which loads of the same content stay on the chip: those that save most, beside two of the largest others."""

from collections.abc import Sequence

__all__ = ["chosen_groups"]


def chosen_groups(groups: Sequence[Sequence[int]], sizes: Sequence[int], capacity: int, *,
                  between_calls: bool = False) -> list[Sequence[int]]:
    """Return those groups of needs of the same content that stay: all, or the largest beside which two others fit.

    What a group saves are the loads behind its first, with ``between_calls`` that one too. ``sizes`` are by need.
    """
    saved = 0 if between_calls else 1
    inside = {index for group in groups for index in group}
    if between_calls and len(inside) == len(sizes) and sum(sizes[group[0]] for group in groups) <= capacity:
        return list(groups)
    kept: list[Sequence[int]] = []
    left, inside = capacity, set()
    for group in sorted(groups, key=lambda group: (saved - len(group)) * sizes[group[0]]):
        others = (each for index, each in enumerate(sizes) if index not in inside and index not in group)
        if left - sizes[group[0]] >= 2 * max(others, default=0):
            kept.append(group)
            inside |= set(group)
            left -= sizes[group[0]]
    return kept
