"""Tables of generated pages, read back: rows by the heads of their columns, and the numbers in a cell."""

import re


def section(text: str, title: str) -> str:
    """Return what stands below the heading of second level ``title``."""
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text: str, title: str, table: int = 0) -> list[dict[str, str]]:
    """Return the rows of the first or a later table of a section, as cells by head; heads that recur get a number."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", section(text, title) + "\n", re.MULTILINE)
    heads, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in blocks[table].splitlines())
    unique = [head if head not in heads[:place] else f"{head} {heads[:place].count(head) + 1}"
              for place, head in enumerate(heads)]
    return [dict(zip(unique, line, strict=True)) for line in lines]


def numbers(cell: str) -> list[float]:
    """Return the numbers in a cell."""
    return [float(each.replace(",", "")) for each in re.findall(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?", cell)]


def number(cell: str) -> float:
    """Return the one number in a cell."""
    (value,) = numbers(cell)
    return value
