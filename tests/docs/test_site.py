"""The site: every page is of one kind and stands in one list, and Sphinx makes all of them without a warning."""

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.docs.pages import ROOT, read

DOCS = ROOT / "docs"
KINDS = ("tutorials", "how-to", "reference", "explanation")
LISTED = re.compile(r"^- \[[^\]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)


def test_every_page_stands_in_the_list_of_one_kind():
    assert tuple(LISTED.findall(read(DOCS / "index.md"))) == KINDS
    found = Counter(page for kind in KINDS for page in LISTED.findall(read(DOCS / f"{kind}.md")))
    assert set(found.values()) == {1}
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index", *KINDS} | {"decisions/index"}
    assert pages - set(found) == set(), "list it in docs/tutorials.md, how-to.md, reference.md or explanation.md"


@pytest.mark.slow
def test_the_site_is_made_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(tmp_path / "site")],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    python = (tmp_path / "site" / "python.html").read_text(encoding="utf-8")
    assert 'id="tilewright.InferenceSession.run"' in python
    assert "Raises" in python
    assert "commands.html" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
