"""Random CNN graphs equal ONNX Runtime on both engines, and so does every graph that once did not."""

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import quantised
from tests.fuzz.choices import Choices, shrink
from tests.fuzz.fuzz_graph import FuzzGraph
from tests.fuzz.graphs import random_graph
from tests.fuzz.oracle import judge
from tests.fuzz.run import CORPUS, FORMS, form_of, graph_of, run_one
from tilewright.isa.machine import preset

# Seeds of their own, so that runs by hand with others show more.
_SEED = 777
_BATCH = 10


def held(verdict):
    """Refusals apart, something has been compared and nothing differs."""
    assert verdict.mismatches == []
    return verdict


@pytest.mark.parametrize("batch", range(10))
def test_random_graphs_equal_onnx_runtime(batch):
    compared = 0
    for number in range(batch * _BATCH, (batch + 1) * _BATCH):
        verdict = held(run_one(_SEED, number, "fast", save=False))
        compared += verdict.engine > 0 and verdict.exact + verdict.loose + verdict.floats > 0
    assert compared >= _BATCH - 2, "most graphs must be compiled and compared, or nothing is tested"


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data(), form=st.sampled_from(("qdq", "qoperator", "float", "lines qdq")),
       machine=st.sampled_from(("base", "nano")))
def test_graphs_that_hypothesis_draws_equal_onnx_runtime(data, form, machine):
    """It likes the odd ones, and makes one that fails as small as can be."""
    graph = graph_of(lambda count: data.draw(st.integers(0, count - 1)), form)
    held(judge(graph.model.SerializeToString(), machine=preset(machine))[0])


@pytest.mark.parametrize("number", range(5))
def test_random_graphs_equal_onnx_runtime_in_rtl(number):
    assert held(run_one(_SEED, number, "rtl", save=False)).engine > 0


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.onnx")), ids=lambda path: path.stem)
def test_what_once_differed_equals_onnx_runtime(path):
    form, machine, _ = path.stem.split("-", 2)
    arrays = path.with_suffix(".npz")
    inputs = dict(np.load(arrays)) if arrays.exists() else None
    verdict, _ = judge(path.read_bytes(), machine=preset(machine), inputs=inputs)
    held(verdict)
    assert form == "refused" or verdict.engine > 0


@pytest.mark.parametrize("form", ["qdq", "qoperator", "float", "static", "lines qdq", "lines qoperator", "apart qdq",
                                  "apart static", "bytes static", "wide qdq", "mixed qdq"])
def test_a_graph_is_a_function_of_its_choices(form):
    graph = graph_of(5, form)
    assert graph.model == graph_of(5, form).model
    assert form_of(0) == form_of(len(FORMS)) == "qdq"


def test_what_the_quantiser_cannot_do_is_counted_apart(monkeypatch):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[1, 4] x) => (float[1, 3] y) { shape = Constant<value_ints = [1, 3]>() y = Reshape(x, shape) }""")
    monkeypatch.setattr(quantised, "random_graph", lambda *_, **__: FuzzGraph(model, "float", ("Reshape",)))
    verdict = run_one(_SEED, 0, "fast", "static", save=False)
    assert (verdict.graphs, verdict.mismatches) == (1, [])
    (said,) = verdict.rejected
    assert said.startswith("quantize_static: ")
    assert "Reshape" in said


def test_a_replay_gives_the_same_graph():
    choices = Choices(3)
    graph = random_graph(choices, "qdq")
    assert random_graph(Choices(choices.taken), "qdq").model == graph.model


def test_shrinking_leaves_what_is_needed():
    assert shrink([5, 9, 2, 7, 1], lambda taken: 7 in taken) == [7]
    assert shrink([40], lambda taken: bool(taken) and taken[0] >= 10) == [20]


def test_a_fault_of_the_engine_is_found(monkeypatch):
    """The oracle itself: one flipped bit in one tensor."""
    from tests.fuzz import oracle

    def corrupt(*arguments, **options):
        result = execute(*arguments, **options)
        name = next(reversed(result.tensors))
        result.tensors[name] = result.tensors[name].copy()
        result.tensors[name].flat[0] += 1
        return result

    execute = oracle.execute
    monkeypatch.setattr(oracle, "execute", corrupt)
    verdict, _ = judge(graph_of(0, "qdq").model.SerializeToString())
    assert any("differs from the integer reference" in text for text in verdict.mismatches)
