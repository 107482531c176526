"""The README stays short, begins with the two commands, and shows what the tool has drawn."""

import re

from tests.docs.pages import ROOT, blocks, commands, read
from tests.support.markdown_tables import rows

TEXT = read(ROOT / "README.md")


def test_it_is_short():
    assert TEXT.count("\n") <= 120


def test_the_two_commands_come_first():
    first = TEXT[TEXT.index("```sh"):].splitlines()[1:3]
    assert [line.split("#")[0].strip() for line in first] == ["make demo", "make test"]


def test_the_loop_is_five_commands():
    (loop,) = [block.text for block in blocks(TEXT) if "tilewright check" in block.text]
    assert [words[0] for words in commands(f"```sh\n{loop}```\n")] == ["check", "run", "compare", "diff", "explore"]


def test_its_first_screen_has_three_rows_of_the_zoo():
    costs = {row["network"]: row for row in rows(read(ROOT / "docs" / "zoo.md"), "What they cost")}
    table = re.search(r"^\| network \| cycles on nano .*\n\|[-:|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]
    assert len(shown) == 3
    for name, *cells in shown:
        assert cells == [costs[name][head] for head in ("cycles, nano", "cycles, base", "cycles, large", "ms, base",
                                                        "µJ, base", "core")]
    assert TEXT[:table.start()].count("\n") < 40


def test_its_pictures_are_there():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_every_kind_of_page_is_linked():
    assert all(f"docs/{kind}.md" in TEXT for kind in ("tutorials", "how-to", "reference", "explanation"))
