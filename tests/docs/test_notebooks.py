"""Notebooks are kept as they run: each has its outputs, and running it again changes none of them."""

import json

import pytest

from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
NAMED = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@NAMED
def test_a_notebook_was_run_to_its_end(path):
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert len(kinds) >= 5
    assert "error" not in kinds


@NAMED
def test_a_notebook_says_nothing_of_the_computer_that_ran_it(path):
    text = path.read_text(encoding="utf-8")
    assert not any(word in text for word in ("site-packages", "/tmp/", "/home/", "0x7f", "Warning"))


def test_there_are_three():
    assert len(NOTEBOOKS) == 3


@pytest.mark.slow
@NAMED
def test_running_a_notebook_again_changes_nothing(path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from tests.support.notebooks import executed

    ran = json.loads(json.dumps(executed(path)))
    kept = json.loads(path.read_text(encoding="utf-8"))
    for ours, theirs in zip(ran["cells"], kept["cells"], strict=True):
        assert ours.get("outputs", []) == [joined(output) for output in theirs.get("outputs", [])]


def joined(output):
    """Return an output of a file as it is in memory: texts in one piece."""
    if "text" in output:
        return output | {"text": "".join(output["text"])}
    return output | {"data": {kind: "".join(lines) for kind, lines in output["data"].items()}}
