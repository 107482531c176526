"""The front held to the hardware: which points are measured, once each, and what is kept of it."""

import threading
from types import SimpleNamespace

import pytest

from tests.bench.exploration.synthetic import FormulaWorkers, setup_for, space_of
from tilewright.bench.exploration import verification
from tilewright.bench.exploration.exploration import explore
from tilewright.bench.exploration.exploration_results import design_of_trial, front_json
from tilewright.bench.exploration.exploration_study import ExplorationStudy
from tilewright.bench.exploration.verification import chosen_points, verify
from tilewright.cli.tables.exploration_progress import verified_table
from tilewright.errors import SimulationError
from tilewright.tools.progress import Silence

SPACE = space_of(lanes=(1, 2, 4, 8), activation_bytes=(16384, 32768), lanes_per_cluster=(1, 2))
NETWORKS = [SimpleNamespace(network=SimpleNamespace(name="net", source="net.onnx", options=None,
                                                    outputs_only=False))]
UNITS = {"LUT": 9000.0, "DSP": 24.0, "BRAM": 35.0}


@pytest.fixture
def study(tmp_path):
    study = ExplorationStudy(tmp_path, setup_for(SPACE))
    explore(study, FormulaWorkers(), 12, lambda _: None)
    yield study
    study.close()


@pytest.fixture
def hardware(monkeypatch):
    """Let RTL take 1,000 cycles and synthesis find the same of every machine; return the machines asked for."""
    asked = {"rtl": [], "synthesis": []}

    def run(source, machine, engine, *_arguments, **_options):
        assert (source, engine) == ("net.onnx", "rtl")
        asked["rtl"].append(machine)
        return SimpleNamespace(report=SimpleNamespace(matches_reference=True, cycles=1000))

    def synthesise(request, target, _step):
        assert (target, request.place) == ("ecp5-85k", False)
        asked["synthesis"].append(request.machine)
        return SimpleNamespace(units=UNITS, total=UNITS.__getitem__)

    monkeypatch.setattr(verification, "run_model", run)
    monkeypatch.setattr(verification, "machine_design", lambda machine, with_core: (machine, with_core))
    monkeypatch.setattr(verification, "synthesise", synthesise)
    return asked


def test_points_are_chosen_from_the_first_to_the_last():
    assert chosen_points(range(9), 3) == [0, 4, 8]
    assert chosen_points(range(2), 3) == [0, 1]
    assert chosen_points(range(9), 1) == [0]
    assert chosen_points(range(9), 0) == []


def test_predicted_and_measured_stand_side_by_side(tmp_path, study, hardware):
    front = study.front()
    found = verify(tmp_path, study, NETWORKS, front, 2, Silence())
    assert list(found) == [front[0].number, front[-1].number]
    for trial in (front[0], front[-1]):
        cycles, lut4 = found[trial.number]["cycles"], found[trial.number]["area"]["lut4"]
        assert cycles == {"predicted": trial.outcome.measures["net.cycles"], "measured": 1000,
                          "error": trial.outcome.measures["net.cycles"] / 1000 - 1}
        assert (lut4["predicted"], lut4["measured"]) == (trial.outcome.measures["lut4"], 9000.0)
    content = front_json(study.setup, study.finished(), front, found, "tilewright explore")
    table = verified_table(content)
    assert table.row_count == 2 * len(("cycles", "lut4", "mult18", "bram", "area"))
    assert verified_table(front_json(study.setup, study.finished(), front, {}, "tilewright explore")) is None


def test_what_was_measured_is_not_measured_again(tmp_path, study, hardware):
    front = study.front()
    first = verify(tmp_path, study, NETWORKS, front, 2, Silence())
    assert verify(tmp_path, study, NETWORKS, front, 2, Silence()) == first
    assert len(hardware["rtl"]) == len(hardware["synthesis"]) == 2


def test_designs_are_measured_side_by_side(tmp_path, study, hardware, monkeypatch):
    both = threading.Barrier(2, timeout=60)  # a run in RTL that waits for a synthesis to be under way

    def waits(part):
        def waiting(*arguments, **options):
            both.wait()
            return part(*arguments, **options)
        return waiting

    monkeypatch.setattr(verification.os, "cpu_count", lambda: 2)
    for name in ("run_model", "synthesise"):
        monkeypatch.setattr(verification, name, waits(getattr(verification, name)))
    assert len(verify(tmp_path, study, NETWORKS, study.front(), 2, Silence())) == 2


def test_what_was_measured_before_an_interruption_is_kept(tmp_path, study, hardware, monkeypatch):
    front, run = study.front(), verification.run_model

    def interrupted(source, machine, *arguments, **options):
        if machine.same_as(design_of_trial(study.setup, front[-1]).machine):
            raise KeyboardInterrupt
        return run(source, machine, *arguments, **options)

    monkeypatch.setattr(verification, "run_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        verify(tmp_path, study, NETWORKS, front, 2, Silence())
    monkeypatch.setattr(verification, "run_model", run)
    assert list(verify(tmp_path, study, NETWORKS, front, 1, Silence())) == [front[0].number]
    assert len(hardware["rtl"]) == 1


def test_a_design_that_does_not_run_is_still_synthesised(tmp_path, study, hardware, monkeypatch):
    def fails(*_arguments, **_options):
        raise SimulationError("Simulator has stopped")

    monkeypatch.setattr(verification, "run_model", fails)
    (found,) = verify(tmp_path, study, NETWORKS, study.front(), 1, Silence()).values()
    assert "Simulator has stopped" in found["rtl_error"]
    assert "cycles" not in found
    assert found["area"]["lut4"]["measured"] == 9000.0
