"""Pictures of blocks: those of docs/pictures are fresh, arrows meet the boxes they are meant for, and texts fit."""

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tilewright.cli.reference.block_picture import block_picture
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS

PICTURES = sorted((Path(__file__).parents[3] / "docs" / "pictures").glob("*.toml"))
NAMED = pytest.mark.parametrize("source", PICTURES, ids=lambda path: path.stem)
SVG = "{http://www.w3.org/2000/svg}"
LETTER = 6.6
"""Pixels that a letter takes, about."""

TWO = """
title = "Two"
size = [300, 300]
[[box]]
id = "a"
at = [10, 10, 80, 40]
kind = "unit"
text = ["a & b", "{multipliers}"]
[[box]]
id = "b"
at = [%d, %d, 80, 40]
kind = "memory"
text = ["b"]
[[arrow]]
way = ["a", "b"]
"""


def shapes(picture):
    """Return the boxes of a picture without the page, the ways of its arrows, and its texts."""
    root = ElementTree.fromstring(picture)
    return ([each for each in root.iter(f"{SVG}rect") if each.get("class") != "page"],
            [each.get("d") for each in root.iter(f"{SVG}path") if each.get("class") == "way"],
            [each.text for each in root.iter(f"{SVG}text")])


@NAMED
def test_pictures_of_the_docs_are_fresh(source):
    picture = source.with_suffix(".svg").read_text(encoding="utf-8")
    assert picture == block_picture(source.read_text(encoding="utf-8")), "run: make docs"


@NAMED
def test_texts_fit_their_boxes_and_boxes_the_picture(source):
    found = tomllib.loads(source.read_text(encoding="utf-8"))
    width, height = found["size"]
    for each in found["box"]:
        x, y, across, down = each["at"]
        assert 0 <= x < x + across <= width
        assert 0 <= y < y + down <= height
        shown = [re.sub(r"\{\w+\}", "128", line) for line in each["text"]]
        assert max(map(len, shown)) * LETTER < across
        assert each["kind"] == "group" or len(each["text"]) * 17 < down


def test_there_are_pictures():
    assert [path.stem for path in PICTURES] == ["architecture", "datapath"]


@pytest.mark.parametrize(("place", "way"), [
    ((150, 20), "M90,35 L150,35"), ((20, 100), "M55,50 L55,100"), ((150, 100), "M90,30 L190,30 L190,100"),
    ((150, 0), "M90,25 L150,25"),
])
def test_arrows_go_from_side_to_side(place, way):
    boxes, ways, texts = shapes(block_picture(TWO % place))
    assert ways == [way]
    assert len(boxes) == 2
    assert texts == ["a & b", str(PRESETS["base"].multipliers), "b"]


@pytest.mark.parametrize(("right", "wrong"), [
    ('kind = "memory"', 'kind = "cloud"'), ('way = ["a", "b"]', 'way = ["a", "c"]'), ('id = "a"', ""),
    ("size", "sizes"), ("{multipliers}", "{dividers}"), ('title = "Two"', "title = "),
])
def test_what_is_no_description_is_refused(right, wrong):
    with pytest.raises(InputError, match="block_picture"):
        block_picture((TWO % (150, 20)).replace(right, wrong))
