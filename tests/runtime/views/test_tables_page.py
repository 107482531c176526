"""Tables of a page are those that were given, and sort in a browser; tables of Markdown become such tables."""

from tests.support.accessibility import grave_findings
from tests.support.browser import opened
from tilewright.runtime.views.tables_page import PageTable, TablesPage, markdown_tables, rows_table


def test_rows_become_a_head_and_lines():
    found = rows_table("Layers", [{"name": "a", "ok_or_not": True}, {"name": "b", "shape": [2, 3]}], bars="name")
    assert found == PageTable(title="Layers", head=["name", "ok or not", "shape"], bars="name",
                              lines=[["a", "yes", None], ["b", None, "2 × 3"]])


def test_tables_of_markdown_keep_their_headlines_and_their_numbers():
    text = "# Page\n\nText | no table.\n\n## One\n\n| a | b |\n|:--|--:|\n| [x](y.md) `z` | 1,234.5 |\n| q | **7** |\n"
    (found,) = markdown_tables(text)
    assert found.title == "One"
    assert found.head == ["a", "b"]
    assert found.lines == [["x z", 1234.5], ["q", 7.0]]


def test_the_page_draws_and_sorts(tmp_path):
    lines = [{"name": f"</script>{each}", "cycles": each} for each in (5, 100, 20)]
    page = TablesPage(title="Tables", command="tilewright bench", figures=[("cycles", "125", "in all")],
                      tables=[rows_table("Layers", lines, bars="cycles")], notes=["a note"])
    file = tmp_path / "page.html"
    file.write_text(page.html(), encoding="utf-8")
    with opened(file, "dark") as (shown, complaints):
        column = "#tables tbody tr td:nth-child(2)"
        assert shown.locator(column).all_inner_texts() == ["5", "100", "20"]
        shown.locator("#tables th", has_text="cycles").click()
        assert shown.locator(column).all_inner_texts() == ["100", "20", "5"]
        assert shown.locator("#tables svg").count() == 1
        assert complaints == []
        assert grave_findings(shown) == []
