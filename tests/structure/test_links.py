"""Pages name files that exist, in code marks; links are held by tests/docs/test_page_links.py."""

import re

import pytest

from tests.structure.floors import ALLOWED
from tests.structure.source import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/support/README.md"])
_TOPS = "|".join((*ALLOWED, "tests", "docs", "tilewright"))
_PATH = re.compile(rf"`((?:{_TOPS})/[\w./-]*)`")


def named(text: str) -> set[str]:
    """Return the paths from the root that a page names in code marks."""
    found = {path for path in _PATH.findall(text) if "." in path.rpartition("/")[2] or path.endswith("/")}
    return {path for path in found if not re.fullmatch(r"rtl/\w+\.s?v", path)}  # those are a package's


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    assert sorted(path for path in named(text) if not (ROOT / path).exists()) == []


def test_a_path_that_does_not_exist_is_seen():
    assert named("see `isa/no_such.py`, `isa/` and `tests.structure`") == {"isa/no_such.py", "isa/"}
