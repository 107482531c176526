"""A page of key figures and tables that sort: comparisons, baselines, benchmarks; one HTML file, without a network."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tilewright.runtime.views.run_page import page_of

__all__ = ["PageTable", "TablesPage", "markdown_tables", "rows_table"]

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NUMBER = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?|-?\d+(\.\d+)?")

_Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table of a page; the column called ``bars``, if there is one, is drawn as bars above it."""

    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[_Cell]]
    bars: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesPage:
    """A page.

    Attributes
    ----------
    title, command : str
        ``command`` gives the page again.
    figures : sequence of (str, str, str)
        Name, value and a remark.
    tables : sequence of PageTable
    notes : sequence of str
    """

    title: str
    command: str
    figures: Sequence[tuple[str, str, str]] = ()
    tables: Sequence[PageTable] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def html(self) -> str:
        """Return the page's text."""
        return page_of(Path(__file__).with_name("tables_page.html.j2"), asdict(self),
                       scripts=("drawing.js", "tables_page.js"))


def rows_table(title: str, rows: Sequence[Mapping[str, Any]], bars: str = "") -> PageTable:
    """Return a table of rows by key; values that are neither numbers nor text are shown as text."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    return PageTable(title=title, head=[key.replace("_", " ") for key in head],
                     lines=[[_cell(row.get(key)) for key in head] for row in rows], bars=bars)


def _cell(value: Any) -> _Cell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str | int | float):
        return value
    return " × ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def markdown_tables(text: str) -> Iterator[PageTable]:
    """Yield the tables of a Markdown page, each under the last headline before it; numbers become numbers."""
    title, rows = "", []
    for line in (*text.splitlines(), ""):
        if line.startswith("|"):
            rows.append([_LINK.sub(r"\1", each).replace("`", "").replace("**", "").strip()
                         for each in line.strip().strip("|").split("|")])
            continue
        if len(rows) > 2:
            yield PageTable(title=title, head=rows[0], lines=[[_number(each) for each in row] for row in rows[2:]])
        rows = []
        if line.startswith("#"):
            title = line.lstrip("#").strip()


def _number(text: str) -> _Cell:
    return float(text.replace(",", "")) if _NUMBER.fullmatch(text) else text
