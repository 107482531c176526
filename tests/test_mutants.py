"""Mutants of the source: which edits there are, and which places have none."""

import ast

import pytest

from tests.mutants import AREAS, drawn, mutants_of, quick_tests
from tests.structure.source import ROOT


@pytest.mark.parametrize(("source", "edited"), [
    ("x = a + b\n", ["x = a - b\n"]),
    ("x = a if b <= 3 else c\n", ["x = a if b < 3 else c\n", "x = a if b <= 4 else c\n"]),
    ("x = a and (b or c)\n", ["x = a or (b or c)\n", "x = a and (b and c)\n"]), ("x = True\n", ["x = False\n"]),
    ("x = a not in b\n", ["x = a in b\n"]), ("x = (é) << (1)\n", ["x = (é) >> (1)\n", "x = (é) << (2)\n"]),
    ("x = (a  # a + b\n     - b)\n", ["x = (a  # a + b\n     + b)\n"]), ("x = a @ b\n", []),
    ('raise ValueError(f"{1 + 1} of {2}")\n', []), ("def f(x: 'int' = 1) -> list[3]:\n    return -x\n",
                                                  ["def f(x: 'int' = 2) -> list[3]:\n    return -x\n"])])
def test_an_edit_is_of_one_place(source, edited):
    assert sorted(each.text(source) for each in mutants_of(source, "f.py")) == sorted(edited)


def test_mutants_are_drawn_from_all_areas_and_are_python():
    found = drawn(8, 1)
    assert [each.path.split("/")[0] for each in found[:4]] == list(AREAS)
    assert drawn(8, 1) == found != drawn(8, 2)
    folders = {each.path.rpartition("/")[0] for each in drawn(6, 1, ("rtl/load", "rtl/store"))}
    assert folders == {"rtl/load", "rtl/store"}
    for mutant in found:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(mutant.text(source))) != ast.dump(ast.parse(source))


def test_quick_tests_are_there():
    assert quick_tests()
    assert all((ROOT / each.split("::")[0]).exists() for each in quick_tests())
