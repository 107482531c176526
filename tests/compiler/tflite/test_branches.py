"""IF of a .tflite file is one of its branches, or both and a choice; what does not fit is said."""

import numpy as np
import pytest

from tests.support.litert_results import committed_results, feeds
from tests.support.tflite_cases import content_of
from tests.support.tflite_files import TfliteFile
from tilewright.compiler.errors import BadModelError, CompileError, UnsupportedNodeError
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.runtime.session import InferenceSession


def branched(condition=None, *, kind="ADD", result=(1, 6), branch=1, scale=0.05):
    """Return a file with an IF between x + x and x - x; the condition is a constant or an input."""
    file = TfliteFile()
    given = file.tensor((), dtype="bool") if condition is None else file.constant(np.array(condition))
    x, y = file.tensor((1, 6), 0.05, 1), file.tensor((1, 6), 0.1, 2)
    file.operator("IF", [given, x], [y], ThenSubgraphIndex=branch, ElseSubgraphIndex=2)
    for each in (kind, "SUB"):
        file.next_graph()
        inner, made = file.tensor((1, 6), 0.05, 1), file.tensor(result, 2 * scale, 2)
        file.operator(each, [inner, inner], [made], **({"FusedActivationFunction": 0} if each != "IF" else {
            "ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}))
        file.border([inner], [made])
    return file.content([x] if condition is not None else [given, x], [y])


@pytest.mark.parametrize("condition", [True, False])
def test_a_known_condition_leaves_one_branch(condition):
    content = branched(condition)
    assert [each.kind for each in read_file(content, "net").operators] == ["ADD" if condition else "SUB", "RESHAPE"]
    found, = InferenceSession(content).run(None, {"t1": np.array([[1, 2, 11, -9, 0, 101]], np.int8)})
    # The sum of x by itself has the result's levels: less 1, plus 2; the difference is 0.
    assert found.tolist() == [[2, 3, 12, -8, 1, 102] if condition else [2] * 6]


@pytest.mark.parametrize("name", ["branched", "chosen"])
def test_a_session_takes_the_branch_that_litert_takes(name):
    content = content_of(name)
    model = read_file(content, name)
    found, = InferenceSession(content).run(None, {model.tensors[index].name: values
                                                  for index, values in feeds(model).items()})
    assert np.array_equal(found, committed_results()[f"{name}/0"])


@pytest.mark.parametrize(("changes", "error", "names"), [
    ({"branch": 3}, BadModelError, "subgraph 3 of 3"), ({"branch": 0}, BadModelError, "subgraph 0 of 3"),
    ({"result": (6, 1)}, UnsupportedNodeError, "int8 of .6, 1."), ({"scale": 0.07}, UnsupportedNodeError, "scale"),
    ({"kind": "IF"}, CompileError, "no truth")])
def test_branches_that_do_not_fit_are_refused(changes, error, names):
    with pytest.raises(error, match=names):
        read_file(branched(**changes), "net")


def test_a_branch_with_state_is_refused():
    file = TfliteFile()
    given, x, y = file.tensor((), dtype="bool"), file.tensor((1, 6), 0.05, 1), file.tensor((1, 6), 0.05, 1)
    file.operator("IF", [given, x], [y], ThenSubgraphIndex=1, ElseSubgraphIndex=1)
    file.next_graph()
    inner, handle = file.tensor((1, 6), 0.05, 1), file.tensor((), dtype="resource")
    file.operator("VAR_HANDLE", [], [handle], Container="", SharedName="v")
    file.border([inner], [inner])
    with pytest.raises(UnsupportedNodeError, match="VAR_HANDLE"):
        read_file(file.content([given, x], [y]), "net")


def test_branches_in_a_ring_end_in_a_sentence():
    file = TfliteFile()
    given, x, y = file.tensor((), dtype="bool"), file.tensor((1, 6), 0.05, 1), file.tensor((1, 6), 0.05, 1)
    file.operator("IF", [given, given, x], [y], ThenSubgraphIndex=1, ElseSubgraphIndex=1)
    file.next_graph()
    truth, inner, made = file.tensor((), dtype="bool"), file.tensor((1, 6), 0.05, 1), file.tensor((1, 6), 0.05, 1)
    file.operator("IF", [truth, truth, inner], [made], ThenSubgraphIndex=1, ElseSubgraphIndex=1)
    file.border([truth, inner], [made])
    with pytest.raises(UnsupportedNodeError, match="more than 64 branches"):
        read_file(file.content([given, x], [y]), "net")
