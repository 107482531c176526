"""A model ends where a user says; one with nodes that are not compiled says where, and does then run as told."""

import re
import shlex

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.cli.test_app import invoke, refused
from tests.support.float_models import FloatBuilder
from tilewright.compiler.onnx.ends.end_at import end_at
from tilewright.compiler.onnx.ends.proposed_ends import refuse_early
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.errors import InputError
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session


def detector(*, selects=True):
    """Return a head whose best scores a TopK chooses, and their boxes a GatherElements; or the head alone."""
    builder = FloatBuilder()
    features = builder.node("Relu", builder.conv(builder.input((1, 3, 8, 8)), 3, 8))
    scores = builder.node("Sigmoid", builder.conv(features, 8, 1))
    boxes = builder.conv(features, 8, 1)
    rows = builder.node("Reshape", scores, builder.constant(np.array([1, 64], np.int64)))
    flat = builder.node("Reshape", boxes, builder.constant(np.array([1, 64], np.int64)))
    if not selects:
        return builder.finish(rows, flat)
    best = builder.node("TopK", rows, builder.constant(np.array([5], np.int64)))
    builder.nodes[-1].output.append("places")
    model = builder.finish(best, builder.node("GatherElements", flat, "places", axis=1), features)
    return model, scores, boxes, features


def test_the_command_that_a_refusal_proposes_runs_what_comes_before(tmp_path):
    model, scores, boxes, features = detector()
    onnx.save(model, tmp_path / "net.onnx")
    told = refused(2, "run", tmp_path / "net.onnx", "--engine", "cycles")
    assert "leaves 4 of 9 nodes to the host" in told
    words = shlex.split(re.search(r"tilewright (run .*)$", told)[1])
    assert words[-6:] == ["--end", scores, "--end", boxes, "--end", features]
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    assert "the coprocessor computes every layer" in done.stdout
    checked = invoke("check", tmp_path / "net.onnx")
    assert checked.exit_code == 2
    assert " ".join(words[-6:]) in checked.stdout


def test_nodes_that_are_compiled_or_folded_are_not_refused():
    refuse_early(detector(selects=False))
    builder = FloatBuilder()
    x = builder.conv(builder.input((1, 3, 8, 8)), 3, 8)
    sizes = builder.node("Mod", builder.node("Shape", x), builder.constant(np.array([1000], np.int64)))
    refuse_early(builder.finish(builder.node("Reshape", x, sizes)))


def test_without_anything_before_no_end_is_proposed(tmp_path):
    builder = FloatBuilder()
    onnx.save(builder.finish(builder.node("Det", builder.input((1, 3, 8, 8)))), tmp_path / "net.onnx")
    assert "--end" not in refused(2, "run", tmp_path / "net.onnx", "--float")


def test_what_only_later_nodes_need_goes():
    model, scores, _, features = detector()
    model.graph.input.append(onnx.helper.make_tensor_value_info("other", TensorProto.FLOAT, [1]))
    sample = {"image": np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    whole = onnx_session(model.SerializeToString()).run([features], {**sample, "other": np.zeros(1, np.float32)})
    end_at(model, [features, scores, features])
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.output] == [features, scores]
    assert [value.name for value in model.graph.input] == ["image"]
    assert len(model.graph.node) == 4
    assert "5 of 9 nodes" in notes_of(model)[0]
    np.testing.assert_array_equal(onnx_session(model.SerializeToString()).run([features], sample)[0], whole[0])


@pytest.mark.parametrize("name", ["image", "relu1_ou", "constant0"])
def test_an_end_is_a_computed_tensor(name):
    with pytest.raises(InputError, match="--end"):
        end_at(detector()[0], [name])


def test_a_built_in_network_has_no_other_end():
    assert "--end" in refused(2, "check", "lenet5", "--end", "conv1")
