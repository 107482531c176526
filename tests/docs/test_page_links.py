"""Every relative link of every page leads to a file that exists, and every anchor to a heading of it."""

import json

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, read


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page):
    assert list(dead(page)) == []


@pytest.mark.parametrize("notebook", sorted(ROOT.glob("examples/notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_links_of_notebooks_lead_somewhere(notebook):
    cells = [cell for cell in json.loads(read(notebook))["cells"] if cell["cell_type"] == "markdown"]
    assert list(dead(notebook, "\n\n".join("".join(cell["source"]) for cell in cells))) == []


def dead(page, text=None):
    """Yield the links of a page, or of a text that stands there, that lead nowhere."""
    for link in links(read(page) if text is None else text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        markdown = target.suffix == ".md" and target.exists()
        if not target.exists() or (anchor and markdown and anchor not in anchors(read(target))):
            yield link


def test_dead_links_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One `head`, twice\n\n# One head twice\n\n[a](#one-head-twice) [b](#one-head-twice-1) [c](#two)\n"
                    "[d](page.md#two) [e](none.md) [f](https://example.org/x) `[g](none.md)`\n\n    [h](none.md)\n")
    assert list(dead(page)) == ["#two", "page.md#two", "none.md"]
