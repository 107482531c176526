"""A table that fits: columns go in the stated order, words wrap, and no number is cut."""

import io

import pytest
from rich.console import Console

from tilewright.tools.fitted_table import FittedTable

CYCLES, BYTES = "1,234,567", "98,765,432,100"


def table():
    found = FittedTable(title="Costs")
    found.column("layer")
    found.column("cycles", number=True)
    found.column("bytes", number=True, goes=1)
    found.column("energy (range)", number=True, brief=lambda text: text.partition(" ")[0], brief_head="energy", goes=2)
    found.column("why", least=10)
    found.add_row("/features/block.12/conv", CYCLES, BYTES, "11.5 (9.49 … 14.7)", "it waits for its weights")
    found.add_section()
    found.add_row("in all", CYCLES)
    return found


def printed(width):
    out = Console(file=io.StringIO(), width=width)
    out.print(table())
    return out.file.getvalue()


@pytest.mark.parametrize(("width", "shown", "gone"), [
    (120, ("9.49 … 14.7", BYTES, "/features/block.12/conv", "it waits for its weights"), ()),
    (75, ("energy", "11.5", BYTES, CYCLES), ("9.49", "range")),
    (52, ("energy", "11.5", CYCLES), ("bytes", BYTES)),
    (42, (CYCLES,), ("energy", "11.5", BYTES)),
])
def test_ranges_go_first_then_the_columns_by_turn(width, shown, gone):
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    assert all(each in text for each in shown), text
    assert not any(each in text for each in gone), text


@pytest.mark.parametrize("width", [30, 36, 44, 60, 100])
def test_numbers_stay_whole_and_names_are_wrapped_not_cut(width):
    lines = printed(width).splitlines()
    assert any(CYCLES in line for line in lines)
    cells = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert "".join(cells).startswith("/features/block.12/conv")


def test_a_section_is_kept():
    assert printed(60).count("├") == 1


def test_where_nothing_helps_it_is_folded_and_nothing_is_lost():
    text = printed(16)
    digits = "".join(letter for letter in text if letter.isdigit())
    assert digits.count(CYCLES.replace(",", "")[-3:]) >= 1
    assert max(map(len, text.splitlines())) <= 16
