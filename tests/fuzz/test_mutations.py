"""Damaged files end in success or in a sentence: some hundred new ones, and every one that once did not."""

import hashlib
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.fuzz import mutate
from tests.fuzz.mutations import damaged_bytes, damaged_json, damaged_model
from tests.fuzz.run import graph_of
from tilewright.compiler.emit.manifest import sha256

_SEED = 777


@pytest.fixture(autouse=True)
def _processes_find_the_tests(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])


def test_damaged_files_end_in_success_or_a_sentence():
    outcomes = list(mutate.mutants(_SEED, range(500), 1))
    assert len(outcomes) == 500
    assert [(number, wrong) for number, _, wrong in outcomes if wrong] == []
    kinds = {outcome for _, outcome, _ in outcomes}
    # Damage that nothing survives, or that nothing notices, would prove nothing.
    assert {"model: compiled", "model: BadModelError", "artefact: ArtefactError", "artefact: loaded and run"} <= kinds


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("path", sorted(mutate.DAMAGED.glob("*.onnx")), ids=lambda path: path.stem)
@pytest.mark.parametrize("checked", [False, True])
def test_what_once_did_not(path, checked, tmp_path):
    assert re.fullmatch(r"compiled|checked|refused by check|\w+Error",
                        mutate.try_model(path.read_bytes(), tmp_path, 0 if checked else 1))


def test_a_program_with_an_operand_too_large_is_a_run_error(tmp_path):
    """It is found when the command is built, while the engine runs."""
    artefact = mutate._artefacts(tmp_path)[0]
    program, manifest = artefact / "program.json", artefact / "manifest.json"
    text = program.read_text()
    program.write_text(re.sub(r'"words": \d+', '"words": 1048576', text, count=1))
    manifest.write_text(manifest.read_text().replace(hashlib.sha256(text.encode()).hexdigest(), sha256(program)))
    assert mutate.try_artefact(artefact) == "SimulationError"


def test_damage_is_a_function_of_the_seed():
    model = graph_of(1, "qdq").model
    whole = model.SerializeToString()
    for make in (lambda rng: damaged_bytes(whole, whole, rng), lambda rng: damaged_model(model, rng),
                 lambda rng: damaged_json(b'{"a": [1, 2, {"b": 3}]}', rng)):
        made = [make(np.random.default_rng(seed)) for seed in range(20)]
        assert made == [make(np.random.default_rng(seed)) for seed in range(20)]
        assert len(set(made)) > 10
    assert onnx.load_from_string(whole) == model


def test_a_hang_a_crash_and_a_traceback_are_findings(monkeypatch):
    """The limits themselves, on a worker that misbehaves."""
    monkeypatch.setattr(mutate, "SECONDS", 0.5)
    monkeypatch.setattr(mutate, "STUCK_SECONDS", 12)
    monkeypatch.setattr(mutate, "WORKER", "tests.fuzz.misbehaving")
    found = {number: wrong for number, _, wrong in mutate.mutants(0, range(6), 1)}
    assert found[0] == ""
    assert "ZeroDivisionError" in found[1]
    assert "No end after 12 s" in found[2]
    assert "exit code 3" in found[3]
    assert "MemoryError" in found[4]
    assert "No end after 0.5 s of a processor" in found[5]
