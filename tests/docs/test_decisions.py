"""Decisions: each has its state below its title, fits a page and stands in the index; none is cited by a number."""

import re

import pytest

from tests.docs.pages import ROOT, read
from tests.structure.floors import ALLOWED

FOLDER = ROOT / "docs" / "decisions"
SUBJECTS = sorted(FOLDER.glob("*.md"))
SUBJECTS.remove(FOLDER / "index.md")
STATES = ("In force", "Measured", "Tried and dropped", "Replaced by ")
STATE = re.compile(r"\*(.+?) · \d{4}-\d\d-\d\d(?: to \d+)?(?: · formerly [^*]+)?\*")
TITLED = re.compile(r"^\[(.+)\]\(([\w-]+\.md)#.*?\)(?:: (.+))?$")
LINES = 40
TOPS = (*{name.partition("/")[0] for name in ALLOWED}, "docs", "findings", "tests")
KINDS_OF_TEXT = (".md", ".py", ".j2", ".toml", ".v", ".sv", ".h", ".c", ".cpp", ".ipynb", ".sh")
CITED = re.compile(r"\bdecisions? \d+|decisions\.md|docs/decisions\b.*\bsections? \d+", re.IGNORECASE)


def decisions(text):
    """Return a page's decisions: title and lines behind it."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return [(title, body.strip().splitlines()) for title, body in zip(parts[::2], parts[1::2], strict=True)]


def state(lines):
    """Return the state that stands below a title; empty if none does."""
    found = STATE.fullmatch(lines[0]) if lines else None
    return found[1] if found and found[1].startswith(STATES) else ""


@pytest.mark.parametrize("page", SUBJECTS, ids=lambda page: page.stem)
def test_each_decision_says_its_state_and_fits_a_page(page):
    found = decisions(read(page))
    assert found
    assert [title for title, lines in found if not state(lines)] == [], f"below a title: *{' or '.join(STATES)} · date*"
    assert {title: len(lines) for title, lines in found if len(lines) >= LINES} == {}


def test_the_index_has_every_decision_on_one_line():
    listed = {}
    for subject in re.split(r"^- ", read(FOLDER / "index.md"), flags=re.MULTILINE)[1:]:
        head, *entries = subject.splitlines()
        page = re.fullmatch(r"\[.+\]\(([\w-]+\.md)\)", head)[1]
        found = [TITLED.match(entry.removeprefix("  - ")) for entry in entries]
        assert {each[2] for each in found} == {page}
        listed[page] = [(each[1], each[3] or "in force") for each in found]
    assert sorted(listed) == [page.name for page in SUBJECTS]
    for page in SUBJECTS:
        assert [title for title, _ in listed[page.name]] == [title for title, _ in decisions(read(page))]
        for (title, said), (_, lines) in zip(listed[page.name], decisions(read(page)), strict=True):
            assert state(lines).lower().startswith(said), title


def test_no_text_cites_a_decision_by_a_number():
    texts = [path for top in TOPS for path in sorted((ROOT / top).rglob("*")) if path.suffix in KINDS_OF_TEXT]
    texts += [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    texts.remove(ROOT / "tests" / "docs" / "test_decisions.py")
    found = {path: CITED.search(read(path)) for path in texts}
    assert [f"{path.relative_to(ROOT)}: {cited[0]}" for path, cited in found.items() if cited] == []


def test_what_lacks_a_state_or_a_page_is_seen():
    (title, lines), = decisions("# Page\n\n## One\n*In force · 2026-11-28 · formerly 3*\n\nText.\n")
    assert (title, state(lines)) == ("One", "In force")
    assert state(["In force"]) == state(["*Perhaps · 2026-11-28*"]) == state([]) == ""
    assert CITED.search("see decision 56")
    assert not CITED.search("two decisions of 2026")
