"""Samplers of Optuna that never draw a design twice, and draw the same designs again after an interruption."""

import hashlib
import importlib.util
import random
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from tilewright.bench.exploration.space import Space
from tilewright.errors import InputError

__all__ = ["MOST_OF_A_GRID", "SAMPLERS", "FreshDesigns", "distributions", "require_sampler", "sampler_of"]

SAMPLERS = ("nsga2", "tpe", "gp", "random", "grid")
"""Names of samplers, the default first."""

MOST_OF_A_GRID = 100_000
"""Choices of a space that a grid may have: Optuna lists them."""

_POPULATION = 32
_ATTEMPTS = {"gp": 1}
_RANDOM_ATTEMPTS = 2_000


def distributions(space: Space) -> dict[str, CategoricalDistribution]:
    """Return a space's axes as Optuna has them. Values are powers of two or names, so that none lies between two."""
    return {name: CategoricalDistribution(values) for name, values in space.axes.items()}


def require_sampler(name: str, space: Space) -> None:
    """Refuse a sampler that there is not, or that cannot sample from ``space``.

    Raises
    ------
    InputError
        If so.
    """
    if name not in SAMPLERS:
        raise InputError(f"Sampler must be one of {', '.join(SAMPLERS)}, not {name!r}")
    if name == "gp" and (missing := [each for each in ("torch", "scipy") if importlib.util.find_spec(each) is None]):
        raise InputError(f"Sampler gp needs {' and '.join(missing)}, which must be installed: pip install torch scipy")
    if name == "grid" and space.size > MOST_OF_A_GRID:
        raise InputError(f"Sampler grid needs a space of at most {MOST_OF_A_GRID:,} choices, not {space.size:,}: "
                         f"give fewer values, or take another sampler")


def sampler_of(name: str, space: Space, seed: int, number: int, seen: AbstractSet[str]) -> "FreshDesigns":
    """Return the sampler of trial ``number``: its seed follows from the number, so that it needs no memory."""
    digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
    own = int.from_bytes(digest[:4], "big")
    return FreshDesigns(_inner(name, space, seed, own), space, seen, random.Random(own), _ATTEMPTS.get(name, 24))


def _inner(name: str, space: Space, seed: int, own: int) -> BaseSampler:
    if name == "nsga2":
        return optuna.samplers.NSGAIISampler(population_size=_POPULATION, seed=own)
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=own)
    if name == "gp":
        return optuna.samplers.GPSampler(seed=own, warn_independent_sampling=False)
    if name == "grid":
        return optuna.samplers.GridSampler({key: list(each) for key, each in space.axes.items()}, seed=seed)
    return optuna.samplers.RandomSampler(seed=own)


class FreshDesigns(BaseSampler):
    """A sampler that draws again where another sampler's draw is a design that has been seen.

    Parameters
    ----------
    inner : BaseSampler
    space : Space
    seen : set of str
        Keys of designs, as `Space.key` returns them.
    chance : random.Random
        Draws where ``inner`` has nothing new after some attempts.
    attempts : int
    """

    def __init__(self, inner: BaseSampler, space: Space, seen: AbstractSet[str], chance: random.Random,
                 attempts: int) -> None:
        self._inner, self._space, self._seen, self._chance, self._attempts = inner, space, seen, chance, attempts

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all axes: a whole design is drawn at once."""
        return dict(distributions(self._space))

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
                        ) -> dict[str, Any]:
        """Return a choice that gives a new design, or any choice if none is found."""
        # As it is now: before_trial may have noted in the storage what the other sampler needs.
        trial = study._storage.get_trial(trial._trial_id)
        inner_space = self._inner.infer_relative_search_space(study, trial)
        choice: dict[str, Any] = {}
        for _ in range(self._attempts):
            drawn = self._inner.sample_relative(study, trial, inner_space)
            choice = {name: drawn[name] if name in drawn
                      else self._inner.sample_independent(study, trial, name, each)
                      for name, each in search_space.items()}
            if self._space.key(choice) not in self._seen:
                return choice
        if self._space.keys is not None:
            fresh = [each for key, each in self._space.keys.items() if key not in self._seen]
            return dict(self._chance.choice(fresh)) if fresh else choice
        for _ in range(_RANDOM_ATTEMPTS):
            choice = {name: self._chance.choice(values) for name, values in self._space.axes.items()}
            if self._space.key(choice) not in self._seen:
                break
        return choice

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str,
                           param_distribution: BaseDistribution) -> Any:
        """Return the other sampler's value for a parameter that is no axis."""
        return self._inner.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Let the other sampler prepare itself."""
        self._inner.before_trial(study, trial)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState,
                    values: Sequence[float] | None) -> None:
        """Do nothing: Optuna's samplers note limits here, which trials state themselves."""
