"""Models broken in one way each are refused in a sentence that names it and what to do; docs/errors.md shows them."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.test_app import invoke
from tests.support import emit_errors
from tests.support.broken_models import BROKEN, write_broken

# What a sentence must name: the file, node or tensor, and what came.
NAMED = {
    "no_onnx": ("'no_onnx.onnx'", "web page"), "git_lfs": ("'git_lfs.onnx'", "git lfs pull"),
    "empty": ("'empty.onnx'", "empty"), "cut_short": ("'cut_short.onnx'", "cut short"),
    "cycle": ("'first'", "'second'"), "missing": ("'join'", "'skip'"),
    "determinant": ("'determinant'", "Det"), "lstm": ("'memory'", "'lengths'"), "suppression": ("NonMaxSuppression",),
    "dynamic": ("'image'", "height"),
    "nan_scale": ("'y_scale'", "'quantise_y'", "nan"), "zero_scale": ("'y_scale'", "'quantise_y'", "not 0.0"),
    "negative_scale": ("'y_scale'", "'quantise_y'", "not -0.1"), "weights": ("'conv'", "3 channels", "[4, 5, 3, 3]"),
    "bias_type": ("'dequantise_b'", "int64"), "bias_length": ("'conv'", "4 elements", "7"),
    "external": ("'constant0'", "'../weights.bin'"), "tensor": ("'image'", "4800000000"),
    "double": ("'image'", "float32", "float64"), "opset": ("'opset.onnx'", "opset", "999"),
    "kernel": ("'Conv4'", "bytes of activations", "machine base"),
    "custom": ("'sharpen'", "Sharpen", "'com.example'"), "no_output": ("an output",),
    "batch": ("'image'", "batch of 1", "4"),
}


def test_there_are_expectations_for_all():
    assert NAMED.keys() == BROKEN.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_run_refuses_it_in_one_sentence(name, tmp_path):
    said = emit_errors.sentence(name, tmp_path)
    for word in NAMED[name]:
        assert word in said
    # What to do stands at the end.
    verbs = "again|end|fetch|give|cut|download|fix|put|make|export|run|replace|take"
    assert re.search(rf"[;:] [^;:]*\b({verbs})\b[^;:]*\.$", said), said
    assert "Traceback" not in said
    assert "onnxruntime_src" not in said


@pytest.mark.parametrize("name", BROKEN)
def test_check_says_the_same(name, tmp_path):
    said = emit_errors.sentence(name, tmp_path)
    found = tmp_path / "check.json"
    done = invoke("check", write_broken(name, tmp_path), "--json", found)
    assert done.exit_code == 2
    if not found.exists():
        # A command to paste at the end is each command's own.
        assert (done.stdout, done.stderr.partition("; the command is ")[0].rstrip(".\n")) == (
            "", f"tilewright: {said}".rstrip("."))
        return
    first = json.loads(found.read_text())["refusals"][0]
    if not first["op"]:  # a layer that does not fit
        assert said == f"{first['reason']}: take a larger machine."
        return
    assert said == f"Node {first['node']!r} ({first['op']}) is not supported: {first['reason']}; {first['way_out']}."


def test_the_page_is_up_to_date():
    page = Path(__file__).parents[2] / "docs" / "errors.md"
    assert page.read_text() == emit_errors.page(), "run: make docs"
