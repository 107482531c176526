"""The page of other computers: rows, verdicts, and which wheels have an upper bound."""

import json
import re
import sys
import tomllib
from dataclasses import asdict, replace

import pytest

from tests.docs.pages import ROOT, read
from tests.machines.machines_page import PACKAGES, RUNS, VERSIONS, TriedPython, main, page
from tests.support.markdown_tables import rows

TRIED = TriedPython(python="3.13.0", system="Debian", installer="pip 25", seconds=61.2,
                    packages=dict.fromkeys(PACKAGES, "1.0"), verdicts=dict.fromkeys(RUNS, "✓"))

PRIVATE = {
    "amaranth": (ROOT / "sim" / "verilog", r"from amaranth\.hdl\._ir import"),
    "optuna": (ROOT / "bench" / "exploration", r"\._trial_id\b"),
    "cocotb": (ROOT / "tests" / "support", r"from cocotb_tools\.config import"),
}
"""Packages of which something is used that they do not promise to keep: where, and what."""

PROJECT = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]


def needs() -> list[str]:
    """Return the requirements of the project and of its extras, without the platforms that they are for."""
    extras = PROJECT["optional-dependencies"].values()
    groups = PROJECT["dependencies"], *extras
    return [each.partition(";")[0].strip() for group in groups for each in group]


def test_a_row_says_what_was_tried():
    (row,) = rows(page([TRIED]), "Pythons and wheels")
    assert (row["Python"], row["installer"], row["seconds"], row["numpy"]) == ("3.13.0", "pip 25", "61", "1.0")
    assert {row[name] for name in RUNS} == {"✓"}


def test_what_others_have_tried_is_put_on_the_page_in_order(tmp_path, monkeypatch):
    older = replace(TRIED, python="3.11.2", verdicts=dict.fromkeys(RUNS, "**differs**"))
    (tmp_path / "rows.json").write_text(json.dumps([asdict(TRIED), asdict(older)]))
    rows_file = str(tmp_path / "rows.json")
    monkeypatch.setattr(sys, "argv", ["machines_page", str(tmp_path / "page.md"), "--rows", rows_file])
    assert main() == 1
    assert [row["Python"] for row in rows((tmp_path / "page.md").read_text(), "Pythons and wheels")] == [
        "3.11.2", "3.13.0"]


def test_every_python_that_pip_admits_was_tried_and_ran_everything():
    found = rows(read(ROOT / "docs" / "machines.md"), "Pythons and wheels")
    assert {".".join(row["Python"].split(".")[:2]) for row in found} == set(VERSIONS)
    assert PROJECT["requires-python"] == f">={VERSIONS[0]}"
    assert {row["installer"].split()[0] for row in found} == {"pip", "uv"}
    assert [row for row in found if any("**" in row[name] for name in RUNS)] == []


@pytest.mark.parametrize("need", [each for each in needs() if "<" in each])
def test_an_upper_bound_has_its_reason(need):
    """Versions before 1.0 promise nothing to the next one; of others something private is used."""
    name, least = re.fullmatch(r"([\w-]+)>=([\d.]+),<[\d.]+", need).groups()
    folder, private = PRIVATE.get(name, (ROOT, ""))
    used = private and any(re.search(private, read(path)) for path in folder.rglob("*.py"))
    assert used or least.startswith("0.")
