"""Choose the layers of a batch that are computed image by image because their tensors then stay on chip."""

from collections.abc import Sequence

from tilewright.compiler.schedule.chaining import AnyPlan, chains

__all__ = ["chains_apart"]


def chains_apart(plans: Sequence[AnyPlan], batch: Sequence[AnyPlan], images: int) -> frozenset[int]:
    """Return the layers of those chains that are predicted to take no longer image by image than all images at a time.

    Parameters
    ----------
    plans : sequence of LayerPlan or CorePlan
        Of one image, chained.
    batch : sequence of LayerPlan or CorePlan
        Of the same layers for all ``images``.
    """
    return frozenset(index for chain in chains(plans)
                     if images * _cycles(plans, chain) <= _cycles(batch, chain) for index in chain)


def _cycles(plans: Sequence[AnyPlan], layers: range) -> int:
    return sum(plans[index].cost.cycles for index in layers)
