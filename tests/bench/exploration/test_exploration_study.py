"""Trials in Optuna's storage: as many as asked for, no design twice, whoever asks and whoever ends."""

import pytest

from tests.bench.exploration.synthetic import FormulaWorkers, setup_for, space_of
from tilewright.bench.exploration.design_cost import Verdict
from tilewright.bench.exploration.exploration import TRIES, explore
from tilewright.bench.exploration.exploration_results import TRIALS, RunningTable, as_good_as, trials_csv
from tilewright.bench.exploration.exploration_study import ExplorationStudy
from tilewright.bench.exploration.sampling import SAMPLERS
from tilewright.errors import InputError

LARGE = space_of(lanes=(1, 2, 4, 8, 16), bus_bytes=(4, 8, 16), activation_bytes=tuple(4096 << n for n in range(6)),
                 weight_bytes=tuple(8192 << n for n in range(5)), lanes_per_cluster=(1, 2, 4))


def run(folder, setup, trials, workers=None):
    study = ExplorationStudy(folder, setup)
    explore(study, workers or FormulaWorkers(), trials, lambda _: None)
    return study


def rows(study):
    finished = study.finished()
    return trials_csv(study.setup, finished, study.front()).splitlines()


@pytest.mark.parametrize("sampler", [pytest.param(name, marks=[pytest.mark.slow] if name == "gp" else [])
                                     for name in SAMPLERS])
def test_no_design_is_drawn_twice(tmp_path, sampler):
    if sampler == "gp":
        pytest.importorskip("torch")
    trials = 14 if sampler == "gp" else 45
    study = run(tmp_path, setup_for(LARGE, sampler), trials)
    finished = study.finished()
    assert [each.number for each in finished] == list(range(trials))
    assert len({LARGE.key(each.choice) for each in finished}) == trials


@pytest.mark.parametrize("sampler", ["nsga2", "grid"])
def test_a_space_that_is_exhausted_ends_the_search(tmp_path, sampler):
    space = space_of(lanes=(1, 2), post_lanes=(1, 2, 4), lanes_per_cluster=(1, 2))
    study = run(tmp_path, setup_for(space, sampler), 100)
    assert len(study.finished()) == len(space.keys) == 5


def test_designs_that_cannot_be_are_recorded_with_their_reason(tmp_path):
    space = space_of(lanes=(1, 16), clusters=(1, 4))
    workers = FormulaWorkers()
    verdicts = {each.number: each.outcome for each in run(tmp_path, setup_for(space), 9, workers).finished()}
    impossible = [each for each in verdicts.values() if each.verdict is Verdict.impossible]
    assert len(verdicts) == 4
    assert len(impossible) == 2
    assert len(workers.asked) == 2
    assert all("cluster" in each.reason for each in impossible)


def test_designs_as_good_as_another_are_worse_in_no_objective(tmp_path):
    study = run(tmp_path, setup_for(LARGE, limits=("mult18<=100",)), 60)
    finished = study.finished()
    measures = sorted((each.outcome.measures for each in finished if each.outcome.verdict is Verdict.good),
                      key=lambda found: found["cycles"])[10]
    found = as_good_as(study.setup, finished, measures)
    assert 0 < len(found) < 11
    for each in finished:
        cost = each.outcome.measures
        good = each.outcome.verdict is Verdict.good and cost["cycles"] <= measures["cycles"] \
            and cost["area"] <= measures["area"]
        assert good == (each.number in found)


def test_what_is_beyond_a_limit_is_kept_and_not_on_the_front(tmp_path):
    study = run(tmp_path, setup_for(LARGE, limits=("mult18<=100",)), 60)
    beyond = [each for each in study.finished() if each.outcome.verdict is Verdict.beyond]
    assert beyond
    assert all("mult18" in each.outcome.reason for each in beyond)
    front = study.front()
    assert front
    assert all(each.outcome.measures["mult18"] <= 100 for each in front)
    good = [each.outcome.measures for each in study.finished() if each.outcome.verdict is Verdict.good]
    for point in front:
        here = point.outcome.measures
        assert not any(all(other[name] <= here[name] for name in ("cycles", "area")) and
                       any(other[name] < here[name] for name in ("cycles", "area")) for other in good)


def test_one_seed_gives_one_exploration(tmp_path):
    found = []
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        (tmp_path / folder).mkdir()
        workers = FormulaWorkers()
        workers.width = 1
        found.append(rows(run(tmp_path / folder, setup_for(LARGE, seed=seed), 70, workers)))
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_abandoned_trials_are_done_by_the_next_process(tmp_path):
    setup = setup_for(LARGE, seed=5)
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    workers = FormulaWorkers()
    workers.width = 1
    whole = rows(run(tmp_path / "whole", setup, 45, workers))
    cut = run(tmp_path / "cut", setup, 20, workers)
    asked = cut.next(45)
    cut.close()
    again = ExplorationStudy(tmp_path / "cut", setup)
    taken = again.next(45)
    assert (taken.number, taken.choice) == (asked.number, asked.choice) == (20, asked.choice)
    again.close()
    assert rows(run(tmp_path / "cut", setup, 45, workers)) == whole


def test_a_second_process_joins_in(tmp_path):
    setup = setup_for(LARGE)
    first, second = ExplorationStudy(tmp_path, setup), ExplorationStudy(tmp_path, setup)
    asked = [study.next(4) for study in (first, second, first, second)]
    assert [each.number for each in asked] == [0, 1, 2, 3]
    assert len({LARGE.key(each.choice) for each in asked}) == 4
    assert first.next(4) is second.next(4) is None
    assert first.waits
    second.close()
    assert {first.next(4).number, first.next(4).number} == {1, 3}


def test_a_lost_worker_costs_its_try_and_not_the_study(tmp_path):
    study = run(tmp_path, setup_for(LARGE), 8, FormulaWorkers({2: TRIES - 1, 5: TRIES}))
    verdicts = [each.outcome.verdict for each in study.finished()]
    assert verdicts[5] is Verdict.failed
    assert verdicts.count(Verdict.good) == 7
    assert "Lost" in study.finished()[5].outcome.reason


def test_another_exploration_in_the_folder_is_refused(tmp_path):
    run(tmp_path, setup_for(LARGE), 3)
    for other in (setup_for(LARGE, seed=1), setup_for(LARGE, limits=("mult18<=9",)), setup_for(space_of(lanes=(1, 2))),
                  setup_for(LARGE, "tpe"), setup_for(LARGE, objectives=("area",))):
        with pytest.raises(InputError):
            ExplorationStudy(tmp_path, other)


def test_importances_are_of_every_objective(tmp_path):
    found = run(tmp_path, setup_for(LARGE), 40).importances()
    assert found.keys() == {"cycles", "area"}
    assert set(found["cycles"]) == set(LARGE.axes)


def test_the_table_is_there_while_the_exploration_runs(tmp_path):
    study = ExplorationStudy(tmp_path, setup_for(LARGE))
    table, lines = RunningTable(tmp_path, study), []

    def show(_):
        table.finished()
        lines.append(len((tmp_path / TRIALS).read_text(encoding="utf-8").splitlines()))

    explore(study, FormulaWorkers(), 6, show)
    assert lines[0] >= 2
