"""Lines are broken at spaces and behind marks, and numbers stay whole with their units."""

import random
import re
from itertools import pairwise

import pytest

from tilewright.tools.line_breaks import broken, longest_number

NUMBER_ENDS = re.compile(r"\d[,.]*$")


@pytest.mark.parametrize(("text", "width", "lines"), [
    ("wait activations 6 %", 18, ["wait activations", "6 %"]),
    ("t3_DequantizeLinear:byte 0", 21, ["t3_DequantizeLinear:", "byte 0"]),
    ("/model.22/cv3.0/cv3.0.1/conv", 14, ["/model.22/", "cv3.0/cv3.0.1/", "conv"]),
    ("bytes 1,234,567 → 98,765", 12, ["bytes", "1,234,567 →", "98,765"]),
    ("base,lanes=8,chaining=false", 14, ["base,lanes=8,", "chaining=false"]),
    ("layernormalization4", 12, ["layernormali", "zation4"]),
    ("1,234,567", 4, ["1,23", "4,56", "7"]),
    ("one\ntwo three", 5, ["one", "two", "three"]),
    ("", 5, [""]),
    ("fits", 4, ["fits"]),
    ("pythondata-cpu-cv32e40x", 17, ["pythondata-cpu-", "cv32e40x"]),
    ("\N{CJK UNIFIED IDEOGRAPH-5C42}" * 4, 4, ["\N{CJK UNIFIED IDEOGRAPH-5C42}" * 2] * 2),
])
def test_places(text, width, lines):
    assert broken(text, width) == lines


def test_nothing_is_lost_and_no_number_is_cut_whatever_the_text():
    draw = random.Random(0)
    pieces = ["a", "conv", "_", "/", ".", " ", " ", ",", "12", "1,234", "0.5", "95 %", "3 µJ", "\N{RIGHTWARDS ARROW}"]
    for _ in range(2000):
        text = "".join(draw.choice(pieces) for _ in range(draw.randrange(1, 14)))
        width = draw.randrange(1, 16)
        lines = broken(text, width)
        assert all(len(line) <= width for line in lines), (text, width, lines)
        assert "".join(lines).replace(" ", "") == text.replace(" ", ""), (text, width, lines)
        if longest_number(text) <= width:
            assert not [pair for pair in pairwise(lines) if NUMBER_ENDS.search(pair[0]) and pair[1][0].isdigit()
                        and "".join(pair) in text], (text, width, lines)


def test_the_longest_number_has_its_unit():
    assert [longest_number(each) for each in ("core, 45 % of all", "12,345 cycles", "none", "-3 dB")] == [4, 6, 0, 5]
