"""The command ``extension``, and what is said of files that hold no extension, or a broken one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_app import invoke, refused

EXAMPLES = Path(__file__).parents[3] / "examples/extensions"
ARGMAX, PRELU = EXAMPLES / "argmax.py", EXAMPLES / "prelu.py"


@pytest.mark.parametrize("file", [ARGMAX, PRELU], ids=lambda file: file.stem)
def test_the_examples_are_held_to_their_functions_and_described(file):
    assert invoke("extension", "test", file, "--vectors", 40).exit_code == 0
    manual = invoke("extension", "manual", file)
    assert manual.exit_code == 0
    assert f"#define tw_{file.stem}_" in manual.stdout


@pytest.mark.parametrize("file", [ARGMAX, PRELU], ids=lambda file: file.stem)
def test_an_example_has_at_most_150_lines(file):
    assert len(file.read_text().splitlines()) <= 150


@pytest.mark.parametrize(("example", "old", "new", "named"), [
    (ARGMAX, "def fit(", "def fit(((", "SyntaxError"),
    (ARGMAX, "fit=fit, ", "", "fit"),
    (ARGMAX, "result_bytes=1,", "result_bytes=9,", "result_bytes"),
    (ARGMAX, "LATENCY = 2", "LATENCY = 1", "LATENCY"),
    (ARGMAX, "self.i.ready.eq(go)", "self.i.ready.eq(0)", "results"),
    (ARGMAX, "m = Module()", "m = None", "elaborated"),
    (ARGMAX, "return found.astype", "return len(found).astype", "compute"),
    (PRELU, "LATENCY = 2", "LATENCY = 1", "compute"),
    (PRELU, "LATENCY = 2", "LATENCY = 3", "LATENCY"),
    (PRELU, "def fit(", "def fit(((", "SyntaxError"),
    (PRELU, "fit=fit, ", "", "fit"),
    (PRELU, "m = Module()", "m = None", "elaborated"),
    (PRELU, "return np.clip(y", "return np.clip(z", "compute"),
    (PRELU, "Mux(y > 127, 127, Mux(y < -128, -128, y))", "y", "compute"),
    (PRELU, "parameter_bytes=4,", "", "parameter_bytes"),
    (PRELU, '"parameters": In(ArrayLayout(32, lanes))', '"parameters": In(ArrayLayout(16, lanes))', "parameters"),
])
def test_a_broken_file_is_met_with_one_sentence(tmp_path, example, old, new, named):
    text = example.read_text()
    assert old in text
    path = tmp_path / "mine.py"
    path.write_text(text.replace(old, new, 1))
    said = refused(2, "extension", "test", path)
    assert str(path) in said
    assert named in said


@pytest.mark.parametrize(("example", "network", "old", "new"), [
    (ARGMAX, "segments_network.py", 'return {"least": 0}', "return {}"),
    (ARGMAX, "segments_network.py", 'return {"least": 0}', 'return {"least": 2}'),
    (ARGMAX, "segments_network.py", 'return {"least": 0}', "return 5"),
    (ARGMAX, "segments_network.py", 'return {"least": 0}', "return 1 // 0"),
    (PRELU, "prelu_network.py", "return ({", "return 5\n    return ({"),
    (PRELU, "prelu_network.py", "return ({", "return ({}, 1)\n    return ({"),
    (PRELU, "prelu_network.py", "return ({", "1 // 0\n    return ({"),
    (PRELU, "prelu_network.py", '"slope": slope}', '"slope": 1 << 25}'),
    (PRELU, "prelu_network.py", "reshape(-1, 4)", "reshape(-1, 2)"),
])
def test_a_fit_that_misbehaves_is_met_with_one_sentence(tmp_path, example, network, old, new):
    model, path = tmp_path / "net.onnx", tmp_path / "mine.py"
    subprocess.run([sys.executable, EXAMPLES / network, model], check=True)
    path.write_text(example.read_text().replace(old, new, 1))
    assert "fit" in refused(2, "compile", model, "-o", tmp_path / "out", "--extension", path)


@pytest.mark.parametrize("command", ["run", "check", "compare", "evaluate"])
def test_a_file_that_is_not_there_is_met_with_one_sentence(tmp_path, command):
    assert "none.py" in refused(2, command, "lenet5", "--extension", tmp_path / "none.py")


def test_two_extensions_are_one_too_many():
    assert "one extension" in refused(2, "machine", f"base,extension={PRELU}", "--extension", ARGMAX)
