"""The pages as text: which there are, and their headings, links, blocks and commands."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/support/README.md"])

_FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?: {4}[^\n]*\n)+)")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)
_INLINE = re.compile(r"`(tilewright [^`]+)`")


@dataclass(frozen=True)
class Block:
    """A block of code: its language with what stands behind it, empty if it has none, and its text."""

    info: str
    text: str


def read(page: Path) -> str:
    """Return a page's text."""
    return page.read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Return the blocks of code, fenced or indented, in order of their kinds."""
    fenced = [Block(info.strip(), body) for _, info, body in _FENCE.findall(text)]
    rest = _FENCE.sub("", text)
    return fenced + [Block("", re.sub(r"^ {4}", "", body, flags=re.MULTILINE)) for body in _INDENTED.findall(rest)]


def prose(text: str) -> str:
    """Return a page without its blocks of code."""
    return _INDENTED.sub("", _FENCE.sub("", text))


def links(text: str) -> list[str]:
    """Return what links outside of code lead to, those to other sites left out."""
    plain = re.sub(r"`[^`\n]*`", "", prose(text))
    return [link for link in _LINK.findall(plain) if not re.match(r"[a-z]+:", link)]


def anchors(text: str) -> set[str]:
    """Return the anchors that a forge gives a page's headings."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in _HEADING.findall(prose(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(slug if not seen[slug] else f"{slug}-{seen[slug]}")
        seen[slug] += 1
    return found


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of ours in blocks for a shell, without the program's name."""
    for block in blocks(text):
        if block.info in ("", "sh", "console"):
            for line in block.text.replace("\\\n", " ").splitlines():
                yield from _ours(line)


def named_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of ours that prose names in code marks; it need not be whole."""
    for line in _INLINE.findall(re.sub(r"\s*\n\s*", " ", prose(text))):
        yield from _ours(line)


def _ours(line: str) -> Iterator[list[str]]:
    if not line.startswith("tilewright "):
        return
    try:
        words = shlex.split(line.removeprefix("$ "), comments=True)
    except ValueError:  # an apostrophe in prose that looks like a command
        words = line.split()
    yield words[1:min((words.index(each) for each in ("|", ">", "&&", ";") if each in words), default=None)]
