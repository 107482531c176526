"""A table that fits the terminal: it drops columns in a stated order, then wraps words; it never cuts a number."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from tilewright.tools.line_breaks import broken, longest_number

__all__ = ["FittedTable"]

_LEAST = 12
"""Letters below which a column of words is not made narrower, as long as another column may go."""

_FRAME = 3
"""Letters of the frame for each column; there is one more for all."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """Ways to narrow a column where there is too little room; see :meth:`FittedTable.column`."""

    goes: int
    least: int
    brief: Callable[[str], str] | None
    brief_head: str


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as it stands now: the head, the cells, and how it may still change."""

    head: Text
    cells: tuple[Text, ...]
    number: bool
    fit: _Fit

    @property
    def natural(self) -> int:
        """Letters of its longest line."""
        return max(cell_len(line.plain) for text in (self.head, *self.cells) for line in text.split("\n") or [Text()])

    @property
    def least(self) -> int:
        """Letters that it must have: all, if it holds numbers; those of the longest number among words."""
        if self.number:
            return self.natural
        numbers = max(longest_number(text.plain) for text in (self.head, *self.cells))
        return min(self.natural, max(self.fit.least, numbers))

    def in_lines(self, width: int) -> "_Column":
        """Return the column with its words broken into lines of ``width`` letters; text in styles is left to rich."""
        if self.number or self.natural <= width:
            return self
        head, *cells = (text if text.spans else Text("\n".join(broken(text.plain, width)))
                        for text in (self.head, *self.cells))
        return replace(self, head=head, cells=tuple(cells))

    def in_brief(self) -> "_Column":
        """Return the column in its brief form."""
        brief = self.fit.brief
        assert brief is not None
        cells = tuple(Text(brief(cell.plain)) for cell in self.cells)
        return replace(self, head=Text(self.fit.brief_head), cells=cells, fit=replace(self.fit, brief=None))


class FittedTable(Table):
    """A table whose columns are added with :meth:`column`; rows, sections and titles are those of rich."""

    def __init__(self, title: Text | str | None = None) -> None:
        super().__init__(title=title)
        self._fits: list[_Fit] = []

    def column(self, head: str | Text, *, number: bool = False, goes: int = 0, least: int = _LEAST,
               brief: Callable[[str], str] | None = None, brief_head: str = "") -> None:
        """Add a column.

        Parameters
        ----------
        head : str or Text
            Its head, of one line or more.
        number : bool
            Its cells are numbers: they stand at the right, and are neither cut nor wrapped.
        goes : int
            Its turn among the columns that are dropped where there is too little room, from 1; 0 if it stays. Columns
            of the same turn go together.
        least : int
            Letters of a line of words, at least, as long as there are columns that may go.
        brief : function of str, optional
            Gives a shorter form of a cell; it is taken before any column is dropped.
        brief_head : str
            The head of that form.
        """
        self.add_column(head, justify="right" if number else "left", overflow="fold")
        self._fits.append(_Fit(goes, least, brief, brief_head))

    @property
    def dropped(self) -> tuple[str, ...]:
        """Heads of the columns that may be dropped, in the order in which they are."""
        turns = [(fit.goes, str(column.header).replace("\n", " "))
                 for column, fit in zip(self.columns, self._fits, strict=True) if fit.goes]
        return tuple(head for _, head in sorted(turns, key=lambda turn: turn[0]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table as it fits."""
        columns = _fitted([_Column(_text(column.header, console), tuple(_text(cell, console) for cell in column.cells),
                                   column.justify == "right", fit)
                           for column, fit in zip(self.columns, self._fits, strict=True)], options.max_width)
        table = Table(title=self.title, caption=self.caption)
        widths = _widths(columns, options.max_width)
        columns = [column.in_lines(width) for column, width in zip(columns, widths, strict=True)]
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column.head, justify="right" if column.number else "left", width=width, overflow="fold")
        for place, row in enumerate(self.rows):
            table.add_row(*(column.cells[place] for column in columns), end_section=row.end_section)
        yield table


def _text(cell: object, console: Console) -> Text:
    return cell if isinstance(cell, Text) else console.render_str(str(cell), highlight=False)


def _needed(columns: list[_Column]) -> int:
    return sum(column.least for column in columns) + _FRAME * len(columns) + 1


def _fitted(columns: list[_Column], width: int) -> list[_Column]:
    """Return the columns that there is room for: first in brief forms, then without those that may go."""
    for place, column in enumerate(columns):
        if _needed(columns) > width and column.fit.brief is not None:
            columns = [*columns[:place], column.in_brief(), *columns[place + 1:]]
    for turn in sorted({column.fit.goes for column in columns} - {0}):
        if _needed(columns) > width:
            columns = [column for column in columns if column.fit.goes != turn]
    return columns


def _widths(columns: list[_Column], width: int) -> list[int]:
    """Return the letters of each column: numbers have what they need, and words share the rest."""
    widths = [column.least for column in columns]
    words = [place for place, column in enumerate(columns) if not column.number]
    room = width - sum(widths) - _FRAME * len(columns) - 1
    while room < 0 and (wide := [place for place in words if widths[place] > 1]):
        widths[max(wide, key=lambda place: widths[place])] -= 1
        room += 1
    while room > 0 and (short := [place for place in words if widths[place] < columns[place].natural]):
        widths[min(short, key=lambda place: widths[place])] += 1
        room -= 1
    return widths
