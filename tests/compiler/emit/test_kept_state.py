"""State in a C project for a board: it stays in memory between calls until it is reset, with ONNX Runtime's bits."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.compiler.emit.test_baremetal import built, example_input, outputs_of, said
from tests.support.state_models import STATE, state_model
from tilewright.compiler.compile import compile_file, emit_artefact
from tilewright.compiler.emit.kept_state import StateError, kept_states
from tilewright.compiler.network.layers import TensorInfo
from tilewright.isa.machine import preset
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.session import InferenceSession

_SHAPE = (1, 8, 3, 2)


@pytest.fixture(scope="module")
def artefact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    onnx.save(state_model(), folder / "net.onnx")
    return emit_artefact(compile_file(folder / "net.onnx", preset("nano")), folder / "net.onnx", folder / "out",
                         state=STATE)


def calls(artefact, seeds):
    """Return ONNX Runtime's y of calls one after the other, from zeros on."""
    theirs, state, found = session(artefact.model.read_bytes()), dict.fromkeys(STATE, np.zeros(_SHAPE, np.float32)), []
    info = artefact.manifest.tensors[artefact.manifest.inputs[0]][0]
    assert info.onnx_name == "x"
    for seed in seeds:
        y, hn, cn = theirs.run(["y", "hn", "cn"], {"x": example_input(info, seed), **state})
        state = {"h": hn, "c": cn}
        found.append(y)
    return found


def test_two_calls_and_one_from_the_start_again_are_those_of_onnx_runtime(artefact, tmp_path):
    first, second = calls(artefact, (0, 1))
    lines = said(artefact, built(artefact, tmp_path / "project"), 3)
    outputs = [info for info in artefact.manifest.outputs if info.onnx_name == "y"]
    alone = replace(artefact, manifest=replace(artefact.manifest, outputs=tuple(outputs)))
    for line, right in zip(lines, (first, second, first), strict=True):
        np.testing.assert_array_equal(outputs_of(alone, line)[0], right)
    assert not np.array_equal(first, second)
    text = (tmp_path / "project" / "model.h").read_text()
    assert "TILEWRIGHT_STATE_BYTES 96" in text
    assert "int tilewright_run(const tilewright_input_t *in, tilewright_output_t *out);" in text


def test_a_session_of_the_compiled_model_carries_its_state(artefact):
    ours = InferenceSession(artefact.folder)
    assert ours.pairs == STATE
    info = artefact.manifest.tensors[artefact.manifest.inputs[0]][0]
    for seed, right in enumerate(calls(artefact, (0, 1))):
        np.testing.assert_array_equal(ours.run(["y"], {"x": example_input(info, seed)})[0], right)


def test_levels_of_one_end_and_sums_of_the_other_are_refused():
    ends = [TensorInfo(name=name, shape=(8, 1, 1), scale=np.float32(1), zero_point=0, onnx_name=name, dtype=dtype,
                       onnx_dtype="float32", onnx_shape=(1, 8)) for name, dtype in (("h", "int8"), ("hn", "float32"))]
    with pytest.raises(StateError) as caught:
        kept_states({"h": "hn"}, [(ends[0], 0)], [(ends[1], 0)], lambda info, address: {})
    assert all(word in str(caught.value) for word in ("'h'", "'hn'", "float32"))
