"""Damaged .tflite files end in success or in a sentence."""

from pathlib import Path

import pytest

from tests.fuzz import mutate, tflite_mutants

_SEED = 41


@pytest.fixture(autouse=True)
def _processes_find_the_tests(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])


def test_damaged_files_end_in_success_or_a_sentence():
    outcomes = list(mutate.mutants(_SEED, range(30), 1, tflite_mutants.WORKER))
    assert [(number, wrong) for number, _, wrong in outcomes if wrong] == []
    # Damage that nothing survives, or that nothing notices, would prove nothing.
    assert {"tflite: compiled", "tflite: BadModelError"} <= {outcome for _, outcome, _ in outcomes}


def test_damage_is_a_function_of_the_seed():
    made = [tflite_mutants.tflite_mutant(3, number) for number in range(10)]
    assert made == [tflite_mutants.tflite_mutant(3, number) for number in range(10)]
    assert len(set(made)) == len(made)
