"""A job is made of a compiled model in a folder, whatever its border holds."""

from dataclasses import replace

import numpy as np

from tests.compiler.words.test_word_functions import X, model
from tests.compiler.words.test_word_operators import Graph
from tilewright.compiler.compile import compile_model
from tilewright.isa.machine import PRESETS
from tilewright.runtime.session import InferenceSession


def test_a_compiled_model_of_words_is_read_back_and_run(tmp_path):
    g = Graph()
    name, _ = g.quantised("x", np.float64(X), 0.0003, np.int16(20))
    name, _ = g.quantised(g.node("Sigmoid", name), np.float64(X), 1 / 65_535, np.int16(-32_768))
    path = tmp_path / "words.onnx"
    path.write_bytes(model(g, name))
    artefact = compile_model(path, replace(PRESETS["base"], wide_words=True), tmp_path / "out")
    (found,) = InferenceSession(artefact.folder).run(None, {"x": X})
    assert np.abs(found - 1 / (1 + np.exp(-np.float64(X)))).max() < 3 / 65_535
