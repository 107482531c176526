"""The study of an exploration: trials in Optuna's storage, which outlives the process and is shared by many.

Every trial has one owner, the process that has its design evaluated. A process that has ended, however it ended, leaves
trials without an owner: the next process that asks for a trial is given such a one first, with the choice that it has.
So the number of trials is what was asked for, and no design is evaluated for two trials.
"""

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from tilewright.bench.exploration.design_cost import DesignOutcome, Verdict
from tilewright.bench.exploration.design_limits import Limit
from tilewright.bench.exploration.folder_locks import FolderLocks, JournalLock
from tilewright.bench.exploration.sampling import sampler_of
from tilewright.bench.exploration.space import Space, Value
from tilewright.errors import InputError

__all__ = ["STORAGE", "AskedTrial", "ExplorationStudy", "FinishedTrial", "StudySetup"]

STORAGE = "study.journal"
"""The file of Optuna's storage in an exploration's folder: ``optuna-dashboard DIR/study.journal`` shows it."""

_NAME = "tilewright"
_SETUP, _OWNER, _OUTCOME = "setup", "owner", "outcome"

_DRAWS = 40
"""Of the trials, to tell how sure an importance is."""


@dataclass(frozen=True, slots=True)
class StudySetup:
    """Terms of an exploration: whoever goes on with it must ask for the same.

    Attributes
    ----------
    networks : dict of str to float
        Weights by name.
    space : Space
    objectives : tuple of str
    limits : tuple of Limit
    target, sampler : str
    seed : int
    compilation : dict of str to str
        How the networks are read and compiled, where that is not the default.
    """

    networks: dict[str, float]
    space: Space
    objectives: tuple[str, ...]
    limits: tuple[Limit, ...]
    target: str
    sampler: str
    seed: int
    compilation: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON's types."""
        return {"networks": dict(sorted(self.networks.items())), "objectives": list(self.objectives),
                "limits": sorted(map(str, self.limits)), "target": self.target, "sampler": self.sampler,
                "seed": self.seed, "space": self.space.to_json(),
                **({"compilation": self.compilation} if self.compilation else {})}


@dataclass(frozen=True, slots=True)
class AskedTrial:
    """A trial to evaluate: its number, its choices, and Optuna's own object for it."""

    number: int
    choice: dict[str, Value]
    handle: optuna.Trial


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """A trial that has been evaluated."""

    number: int
    choice: dict[str, Value]
    outcome: DesignOutcome


class ExplorationStudy:
    """The trials of an exploration.

    Parameters
    ----------
    folder : Path
        Where the storage lies, or will; must be there.
    setup : StudySetup

    Raises
    ------
    InputError
        If the folder holds an exploration of something else, or no study can be kept there.
    """

    def __init__(self, folder: Path, setup: StudySetup) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.setup = setup
        self._locks = FolderLocks(folder)
        self._seen: dict[int, str] = {}
        with self._locks.turn("asking"):
            self._study = _opened(folder, setup, self._locks)

    def next(self, trials: int) -> AskedTrial | None:
        """Return a trial to evaluate: an abandoned one, or a new one; None if there are ``trials`` already.

        None, too, if every design of the space has been tried.
        """
        with self._locks.turn("asking"):
            known = self._study.get_trials(deepcopy=False)
            for each in known:
                if each.state == TrialState.RUNNING and not self._locks.lives(each.user_attrs.get(_OWNER, _OWNER)):
                    return self._asked(each.number, known, optuna.Trial, each._trial_id)
            if len(known) >= trials or self._exhausted(known):
                return None
            return self._asked(len(known), known, None)

    def _asked(self, number: int, known: list[FrozenTrial], make: Any, trial_id: int = 0) -> AskedTrial:
        setup = self.setup
        self._note(known)
        others = {key for each, key in self._seen.items() if each != number}
        self._study.sampler = sampler_of(setup.sampler, setup.space, setup.seed, number, others)
        trial: optuna.Trial = self._study.ask() if make is None else make(self._study, trial_id)
        choice: dict[str, Any] = {
            name: trial.suggest_categorical(name, values) for name, values in setup.space.axes.items()}
        trial.set_user_attr(_OWNER, self._locks.owner)
        return AskedTrial(trial.number, choice, trial)

    def _note(self, known: list[FrozenTrial]) -> None:
        """Take the designs of trials into those seen."""
        for each in known:
            if each.number not in self._seen and len(each.params) == len(self.setup.space.axes):
                self._seen[each.number] = self.setup.space.key(each.params)

    def _exhausted(self, known: list[FrozenTrial]) -> bool:
        self._note(known)
        keys = self.setup.space.keys
        return keys is not None and keys.keys() <= set(self._seen.values())

    def record(self, asked: AskedTrial, outcome: DesignOutcome) -> FinishedTrial:
        """Store what was found of a trial; return it, with the verdict on its limits."""
        trial = asked.handle
        if outcome.verdict is Verdict.good:
            beyond = [limit for limit in self.setup.limits if limit.violation(outcome.measures) > 0]
            if beyond:
                reason = "; ".join(limit.reason(outcome.measures) for limit in beyond)
                outcome = replace(outcome, verdict=Verdict.beyond, reason=reason)
        trial.set_user_attr(_OUTCOME, asdict(outcome))
        if outcome.measures:
            with warnings.catch_warnings():
                # A process may have ended between this and the next statement: then the limits are stored already.
                warnings.simplefilter("ignore")
                for limit in self.setup.limits:
                    trial.set_constraint(str(limit), limit.violation(outcome.measures))
            self._study.tell(trial, [outcome.measures[name] for name in self.setup.objectives])
        else:
            self._study.tell(trial, state=TrialState.FAIL)
        return FinishedTrial(asked.number, asked.choice, outcome)

    @property
    def waits(self) -> bool:
        """Whether another process has trials under way."""
        return any(each.state == TrialState.RUNNING for each in self._study.get_trials(deepcopy=False))

    def finished(self) -> list[FinishedTrial]:
        """Return all trials that have been evaluated, by number."""
        return [FinishedTrial(each.number, dict(each.params), _outcome(each.user_attrs[_OUTCOME]))
                for each in self._study.get_trials(deepcopy=False) if each.state.is_finished()]

    def front(self) -> list[FinishedTrial]:
        """Return the trials within the limits that no other beats in every objective, cheapest in the first first."""
        first = self.setup.objectives[0]
        best = {each.number for each in self._study.best_trials}
        found = [each for each in self.finished() if each.number in best and each.outcome.verdict is Verdict.good]
        return sorted(found, key=lambda each: (each.outcome.measures[first], each.number))

    def importances(self) -> dict[str, dict[str, float]]:
        """Return for each objective how much of its variance each axis explains; empty where too few designs differ."""
        return _importances(self._study, self.setup.objectives)

    def importance_ranges(self) -> dict[str, dict[str, tuple[float, float, float]]]:
        """Return each share, and the 5th and 95th percentile of what it is when the trials are drawn again.

        A draw takes as many trials as there are, some of them twice and others not at all (a bootstrap).
        """
        known = [each for each in self._study.get_trials(deepcopy=False) if each.state == TrialState.COMPLETE]
        shares, random = self.importances(), Random(self.setup.seed)
        draws = [_importances(_drawn(random.choices(known, k=len(known)), self.setup.objectives), self.setup.objectives)
                 for _ in range(_DRAWS if any(shares.values()) else 0)]
        found: dict[str, dict[str, tuple[float, float, float]]] = {}
        for name, by_axis in shares.items():
            found[name] = {}
            for axis, share in by_axis.items():
                each = sorted(draw[name][axis] for draw in draws if axis in draw[name]) or [share]
                found[name][axis] = (share, each[len(each) // 20], each[-1 - len(each) // 20])
        return found

    def turn(self, name: str) -> Any:
        """Hold a lock that processes of this exploration take in turns."""
        return self._locks.turn(name)

    def close(self) -> None:
        """Leave the exploration: trials of this process that are not finished are abandoned."""
        self._locks.close()


def _outcome(stored: dict[str, Any]) -> DesignOutcome:
    return DesignOutcome(**{**stored, "verdict": Verdict(stored["verdict"])})


def _drawn(trials: Sequence[FrozenTrial], objectives: Sequence[str]) -> optuna.Study:
    """Return a study of these trials alone."""
    study = optuna.create_study(directions=["minimize"] * len(objectives))
    study.add_trials([optuna.trial.create_trial(params=each.params, distributions=each.distributions,
                                                values=each.values) for each in trials])
    return study


def _importances(study: optuna.Study, objectives: Sequence[str]) -> dict[str, dict[str, float]]:
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    found: dict[str, dict[str, float]] = {}
    for place, name in enumerate(objectives):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = dict(optuna.importance.get_param_importances(
                    study, evaluator=evaluator, target=partial(_value, place)))
        except (ValueError, RuntimeError, ZeroDivisionError):
            found[name] = {}
    return found


def _value(place: int, trial: FrozenTrial) -> float:
    return float(trial.values[place])


def _opened(folder: Path, setup: StudySetup, locks: FolderLocks) -> optuna.Study:
    """Return the study in a folder, made now if there is none."""
    try:
        lock: Any = JournalLock(folder / STORAGE, locks.folder / "journal")
        backend = JournalFileBackend(str(folder / STORAGE), lock)
        storage = optuna.storages.JournalStorage(backend)
        study = optuna.create_study(storage=storage, study_name=_NAME, directions=["minimize"] * len(setup.objectives),
                                    load_if_exists=True)
    except Exception as error:
        raise InputError(f"Folder {str(folder)!r} must hold an exploration's {STORAGE}, or none, not one that cannot "
                         f"be opened: {error}") from error
    stated = json.loads(json.dumps(setup.to_json()))
    kept = study.user_attrs.get(_SETUP)
    if kept is None:
        study.set_user_attr(_SETUP, stated)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(list(setup.objectives))  # what optuna-dashboard calls the axes
    elif different := _difference(kept, stated):
        raise InputError(f"Folder {str(folder)!r} holds an exploration with other {different}: go on with the same, "
                         f"or give another folder")
    return study


def _difference(kept: dict[str, Any], stated: dict[str, Any]) -> str:
    """Return what first differs between two set-ups, with both values; empty if nothing does."""
    for key, value in stated.items():
        if kept.get(key) != value:
            return "space" if key == "space" else f"{key} ({kept.get(key)!r}, not {value!r})"
    return ""
