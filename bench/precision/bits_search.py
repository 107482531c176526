"""Choices of bits that may be on the front: layers one at a time first, then together from the least sensitive on.

Weights are narrowed in the order of what a saved bit costs, as errors of single layers tell, which is also done with
some of the layers that gain most from 16 bits reading these. A network with few layers has every choice tried.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TypeVar

from tilewright.bench.precision.bits_choice import BitsChoice
from tilewright.bench.precision.bits_judge import BitsError

__all__ = ["MOST_LISTED", "joint_choices", "single_choices", "undominated"]

MOST_LISTED = 256
"""Choices of a network, at most, of which every one is tried."""

Point = TypeVar("Point")

_NARROWER = {8: 4, 4: 2}

Errors = Mapping[BitsChoice, BitsError]


def single_choices(layers: int, wide: Sequence[bool]) -> list[BitsChoice]:
    """Return 8 bits everywhere, and every choice that differs from it in one layer; ``wide`` tells which can have 16.

    Every choice at all, if these are few.
    """
    eight = BitsChoice.eight(layers)
    if 3**layers * 2**sum(wide) <= MOST_LISTED:
        return [BitsChoice(weights, activations) for weights in product((8, 4, 2), repeat=layers)
                for activations in product(*((8, 16) if each else (8,) for each in wide))]
    found = [eight]
    for layer in range(layers):
        found += [eight.but(layer, weights=bits) for bits in (4, 2)]
        found += [eight.but(layer, activations=16)] if wide[layer] else []
    return found


def joint_choices(errors: Errors, weights: Sequence[int]) -> list[BitsChoice]:
    """Return choices of several layers to try next.

    Parameters
    ----------
    errors : mapping of BitsChoice to BitsError
        Of what `single_choices` returned.
    weights : sequence of int
        Their number in each layer.
    """
    layers = len(weights)
    eight = BitsChoice.eight(layers)
    first = errors[eight].distance
    narrowed, widened = _narrowed(errors, weights), [eight]
    gains = {layer: first - errors[each].distance for layer in range(layers)
             if (each := eight.but(layer, activations=16)) in errors}
    for layer in sorted((layer for layer in gains if gains[layer] > 0), key=lambda layer: -gains[layer]):
        widened.append(widened[-1].but(layer, activations=16))
    everywhere = eight
    for layer in gains:
        everywhere = everywhere.but(layer, activations=16)
    some = dict.fromkeys([*widened[:3], widened[len(widened) // 2], widened[-1], everywhere])
    found = (BitsChoice(each.weights, wide.activations) for wide in some for each in narrowed)
    return [each for each in dict.fromkeys(found) if each not in errors]


def _narrowed(errors: Errors, weights: Sequence[int]) -> list[BitsChoice]:
    """Return 8 bits everywhere, and then fewer and fewer, first where a saved bit costs least."""
    eight = BitsChoice.eight(len(weights))

    def error(layer: int, bits: int) -> float:
        return errors[eight.but(layer, weights=bits)].distance

    found = [eight]
    while True:
        now = found[-1].weights
        steps = [(max(error(layer, _NARROWER[bits]) - error(layer, bits), 0) / (weights[layer] * (bits // 2)), layer)
                 for layer, bits in enumerate(now) if bits in _NARROWER]
        if not steps:
            return found
        _, layer = min(steps)
        found.append(found[-1].but(layer, weights=_NARROWER[now[layer]]))


def undominated(points: Iterable[Point], measures: Callable[[Point], Sequence[float]]) -> list[Point]:
    """Return the points that no other beats or equals in every measure and beats in one; of equal ones the first."""
    kept: list[tuple[Point, tuple[float, ...]]] = []
    for point in points:
        own = tuple(measures(point))
        if any(all(a <= b for a, b in zip(other, own, strict=True)) for _, other in kept):
            continue
        kept = [(each, other) for each, other in kept if not all(a <= b for a, b in zip(own, other, strict=True))]
        kept.append((point, own))
    return [each for each, _ in kept]
