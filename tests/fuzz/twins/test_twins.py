"""Models rewritten in ways that change no number have the same values, and take as many cycles."""

import random

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.fuzz.twins import judge as judging
from tests.fuzz.twins import rewriting
from tests.fuzz.twins.__main__ import main
from tests.fuzz.twins.judge import judge, not_a_twin, smallest, write_twin
from tests.fuzz.twins.rewriting import REWRITINGS, Step, drawn, twin_of
from tests.fuzz.twins.sources import plain_model
from tests.fuzz.twins.tasks import Task, task_of, tried
from tests.support.exactness import random_inputs
from tilewright.compiler.passes.pass_order import compile_network

_SEED = 777
_PLACES = {"own pairs": "mlperf-resnet8", "constants copied": "mlperf-kws", "com.microsoft": "mlperf-kws",
           "joined by twos": "mixed qdq-base-3000036.onnx", "operands swapped": "mixed qdq-base-3000036.onnx",
           "padding apart": "qdq-base-many-stores.onnx", "lines as images": "lines qdq/5",
           "pixels as rows": "mixed qdq-base-3000036.onnx", "groups apart": "mixed qdq-base-3000036.onnx",
           "averages otherwise": "mixed qdq-base-3000036.onnx", "split by slices": "qdq-base-many-stores.onnx",
           "along an axis": "mlperf-kws", "sums otherwise": "qdq-base-level-before-table.onnx",
           "padded maxima": "mixed qdq-base-pieces-of-pixels.onnx",
           "products as Gemm": "mixed qdq-base-3000036.onnx", "turns unstated": "qdq-base-many-stores.onnx",
           "slices gathered": "qdq-base-many-stores.onnx", "inputs left empty": "qdq-base-many-stores.onnx",
           "ranks of constants": "qdq-base-part-of-five-axes.onnx",
           "constants negated": "qdq-base-quantised-twice-on-core.onnx",
           "resized otherwise": "qoperator-base-relu-told-by-its-reader.onnx", "Relu and Min": "mixed qdq/8",
           "pixels moved": "mixed qdq/12", "split unstated": "mixed qdq/18", "squares": "qdq/22",
           "leaky otherwise": "qdq/29", "Relu left out": "static/15"}


@pytest.mark.parametrize("name", REWRITINGS)
def test_a_rewriting_changes_no_number_of_onnx_runtime(name, tmp_path):
    plain = plain_model(_PLACES.get(name, "lenet5"))
    inputs = random_inputs(compile_network(plain.SerializeToString()), np.random.default_rng(1))
    for seed in range(3):
        twin = twin_of(plain, [Step(name, seed)])
        assert twin.applied == (Step(name, seed),)
        assert twin.external or twin.model != plain
        assert not_a_twin(plain, twin, write_twin(twin, tmp_path / f"{seed}.onnx"), inputs) == ""


@pytest.mark.parametrize("number", range(20))
def test_a_twin_has_the_values_and_the_cycles_of_its_plain_model(number):
    task, finding, _ = tried(task_of(_SEED, number))
    assert not finding.fails, f"{task}: {finding.outcome}: {finding.text}"


def test_twins_are_compared_and_not_only_made():
    findings = [judge(each.source, each.steps)[0] for each in (task_of(_SEED, number) for number in range(8))]
    assert sum(each.factor > 0 for each in findings) >= 5


def test_a_twin_is_a_function_of_its_number():
    assert task_of(3, 5) == task_of(3, 5) != task_of(3, 6)
    steps = drawn(random.Random(4), list(REWRITINGS))
    plain = plain_model("lenet5")
    assert twin_of(plain, steps).model == twin_of(plain, steps).model


def _shifted(draft):
    """Add one to a zero point, which changes numbers."""
    zero = next(each for each in draft.graph.initializer if "zero_point" in each.name)
    zero.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(zero) + np.int8(1), zero.name))
    return 1


def test_a_rewriting_that_changes_a_number_is_found(monkeypatch):
    monkeypatch.setitem(rewriting.REWRITINGS, "shifted", _shifted)
    finding, _ = judge("lenet5", [Step("shifted", 0)])
    assert finding.outcome == "no twin"
    assert judge("lenet5", [Step("shifted", 0)], verify=False)[0].outcome == "values"


def test_only_what_makes_a_twin_fail_is_left(monkeypatch):
    monkeypatch.setitem(rewriting.REWRITINGS, "shifted", _shifted)
    steps = [Step("scales restated", 1), Step("shifted", 2), Step("renamed", 3)]
    assert smallest("lenet5", steps, "no twin") == (Step("shifted", 2),)


def test_a_slow_twin_is_found(monkeypatch):
    cycles = iter((1000, 1051))
    judging._plain.cache_clear()
    monkeypatch.setattr(judging, "_cycles", lambda compiled: next(cycles))
    finding, _ = judge("lenet5", [Step("renamed", 0)])
    judging._plain.cache_clear()
    assert (finding.outcome, round(finding.factor, 3)) == ("cycles", 1.051)


def test_a_failing_twin_is_written_with_its_rewritings(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(rewriting.REWRITINGS, "shifted", _shifted)
    monkeypatch.setattr("tests.fuzz.twins.__main__.task_of",
                        lambda *given: Task("lenet5", (Step("reordered", 1), Step("shifted", 2))))
    monkeypatch.chdir(tmp_path)
    assert main(["--count", "1", "--jobs", "1"]) == 1
    assert "'lenet5' by shifted:2" in capsys.readouterr().out
    assert onnx.load("out/twins/twin0.onnx").graph.node
