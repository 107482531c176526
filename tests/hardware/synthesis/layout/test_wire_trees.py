"""Trees over the pins of a net are trees, and short; SPEF has all of their capacitance; LEF gives what wires have."""

from itertools import combinations

import numpy as np
import pytest

from tilewright.hardware.synthesis.layout.lef import LefError, cell_outlines, layer_wires
from tilewright.hardware.synthesis.layout.spef import SpefEnd, SpefNet, spef
from tilewright.hardware.synthesis.layout.steiner import wire_tree


def reached(tree):
    """Return the points that edges lead to from the first."""
    found, before = {0}, set()
    while found != before:
        before = set(found)
        found |= {end for edge in tree.edges if found & set(edge) for end in edge}
    return found


def best_length(pins):
    """Return the length of the shortest tree with up to two Steiner points, which Hanan puts on the pins' grid."""
    grid = [(x, y) for x in {x for x, _ in pins} for y in {y for _, y in pins}]
    return min(spanning_length([*pins, *more]) for number in range(3) for more in combinations(grid, number))


def spanning_length(points):
    """Return the length of a minimum spanning tree."""
    inside, outside, length = [points[0]], list(points[1:]), 0
    while outside:
        step, nearest = min((abs(a[0] - b[0]) + abs(a[1] - b[1]), b) for a in inside for b in outside)
        outside.remove(nearest)
        inside.append(nearest)
        length += step
    return length


def test_three_pins_meet_in_the_middle_and_a_cross_in_its_centre():
    assert wire_tree([(0, 0), (4, 1), (2, 5)]).length == 4 + 5
    assert wire_tree([(0, 1), (2, 1), (1, 0), (1, 2)]).length == 4
    assert wire_tree([(3, 3), (3, 3)]).length == 0


def test_a_tree_is_at_most_a_few_hundredths_from_the_best():
    generator = np.random.default_rng(1)
    nets = [[tuple(map(int, pin)) for pin in generator.integers(0, 30, (4, 2))] for _ in range(40)]
    ours, best = (sum(map(length, nets)) for length in (lambda net: wire_tree(net).length, best_length))
    assert best <= ours <= 1.03 * best < sum(map(spanning_length, nets))


@pytest.mark.parametrize("pins", [2, 7, 64, 300])
def test_all_pins_are_in_the_tree_and_nothing_is_twice(pins):
    generator = np.random.default_rng(pins)
    tree = wire_tree([tuple(pin) for pin in generator.random((pins, 2))])
    assert reached(tree) == set(range(len(tree.points)))
    assert len(tree.edges) == len(tree.points) - 1
    assert len(tree.points) > pins or pins in (2, 300), "a large net keeps its spanning tree"


def test_spef_has_each_wire_once_and_names_what_is_at_its_ends():
    ends = SpefEnd("g7", "Y", True), SpefEnd("g8", "A", False), SpefEnd("", "", False)
    text = spef("top", [SpefNet("n5", ends, ((0, 3, 0.002, 10.0), (1, 3, 0.004, 20.0), (2, 3, 0.006, 30.0)))])
    net = text[text.index("*D_NET"):].split("\n")
    assert net[:5] == ["*D_NET n5 0.012", "*CONN", "*I g7:Y O", "*I g8:A I", "*P n5 O"]
    capacitance = dict(line.split()[1:] for line in net[net.index("*CAP") + 1:net.index("*RES")])
    assert {node: float(value) for node, value in capacitance.items()} == {
        "g7:Y": 0.001, "g8:A": 0.002, "n5": 0.003, "n5:3": 0.006}
    assert net[net.index("*RES") + 1:net.index("*END")] == ["1 g7:Y n5:3 10", "2 g8:A n5:3 20", "3 n5 n5:3 30"]


LEF = """
LAYER metal2
  TYPE ROUTING ;
  WIDTH 0.5 ;  # µm
  RESISTANCE RPERSQ 0.1 ;
  CAPACITANCE CPERSQDIST 2e-05 ;
  EDGECAPACITANCE 6E-05 ;
END metal2
LAYER via
  TYPE CUT ;
  WIDTH 0.2 ;
END via
MACRO INV
  SIZE 2.0 BY 10 ;
  PIN A
    PORT
      LAYER metal1 ;
        RECT 0.5 1 1.5 2 ;
        RECT 0.5 2 1.0 4 ;
    END
  END A
  PIN vdd
    USE POWER ;
  END vdd
END INV
"""


def test_lef_gives_a_micrometre_of_wire_and_the_middle_of_a_pin():
    wires = layer_wires(LEF)
    assert set(wires) == {"metal2"}
    assert wires["metal2"].capacitance == pytest.approx(0.5 * 2e-5 + 2 * 6e-5)
    assert wires["metal2"].resistance == pytest.approx(0.2)
    outline = cell_outlines(LEF)["INV"]
    assert (outline.width, outline.height, outline.pins) == (2.0, 10.0, {"A": (1.0, 2.5)})
    with pytest.raises(LefError, match="INV"):
        cell_outlines(LEF.replace("SIZE 2.0 BY 10 ;", ""))
