"""The walks of docs/architecture.md: their rooms exist, are few, and climb the floors only where they say so."""

import re

import pytest

from tests.structure.floors import FLOORS
from tests.structure.source import ROOT

MOST_ROOMS = 25
MOST_CLIMBS = 2
_TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_SECTION = re.search(r"^## Six walks$(.*?)^## ", _TEXT, re.MULTILINE | re.DOTALL)
WALKS = dict(re.findall(r"^### (.*?)$(.*?)(?=^### |\Z)", _SECTION[1] if _SECTION else "", re.MULTILINE | re.DOTALL))


def floor(path: str) -> int:
    """Return how high a file stands; tests are above everything."""
    folder = path.rpartition("/")[0]
    return len(FLOORS) if folder.startswith("tests") else FLOORS.index(folder)


def test_there_are_six_walks():
    assert len(WALKS) == 6


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_short_and_only_goes_down(name):
    rooms = re.findall(r"`([\w/]+\.py)`", WALKS[name])
    rooms = [room for room in rooms if not room.startswith("tests/runtime/quantise/")]
    climbs = set(re.findall(r"^\d+\. \+ `([\w/]+\.py)`", WALKS[name], re.MULTILINE))
    assert len(climbs) <= MOST_CLIMBS
    assert 5 <= len(rooms) <= MOST_ROOMS
    assert [room for room in rooms if not (ROOT / room).is_file()] == []
    heights = [floor(room) for room in rooms]
    climbed = {room for room, above, below in zip(rooms[1:], heights, heights[1:], strict=False) if below > above}
    assert climbed == climbs
