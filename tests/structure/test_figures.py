"""The figures of the structure, on small trees whose figures can be counted by hand."""

import pytest

from tests.structure.figures import PAGE_LINES, figures
from tests.structure.source import circles, closure


@pytest.fixture
def tree(tmp_path):
    """Write a package of a few modules; a folder of the root is a folder of the package, as in this project."""
    def write(**files: str):
        base = {"tilewright/__init__.py": '"""A package."""\n',
                "runtime/report.py": "__all__ = ['Report']\nclass Report: pass\n"}
        for path, text in (base | {key.replace("__", "/") + ".py": text for key, text in files.items()}).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return {figure.name: figure for figure in figures(tmp_path)}
    return write


def test_a_clean_tree_keeps_every_limit(tree):
    assert all(figure.kept for figure in tree(isa__machine="x = 1\n").values())


def test_a_full_folder_is_named(tree):
    found = tree(**{f"isa__module{number}": "x = 1\n" for number in range(17)})["modules in the fullest folder"]
    assert (found.value, found.kept, found.causes) == (17, False, ("isa",))


@pytest.mark.parametrize(("name", "source"), [
    ("functions of more than 8 parameters", "def f(a, b, c, d, e, f, g, h, *, i): pass\n"),
    ("functions of more than 60 lines", "def f():\n" + "    x = 1\n" * 60),
    ("functions nested deeper than 5 levels",
     "def f():\n" + "".join("    " * level + "if x:\n" for level in range(1, 7)) + "    " * 7 + "pass\n"),
    ("class names used more than once", "class Report: pass\n"),
])
def test_a_function_or_class_over_a_limit_is_named(tree, name, source):
    found = tree(isa__machine=source)[name]
    assert found.value == 1
    assert not found.kept
    assert "isa/machine.py" in found.causes[0]


def test_more_lines_of_pages_than_there_were_are_seen(tree, tmp_path):
    (tmp_path / "docs" / "subject").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text("line\n" * (PAGE_LINES - 281))
    (tmp_path / "docs" / "subject" / "page.md").write_text("line\n" * 281)
    assert tree()["lines of the pages in docs"].kept
    (tmp_path / "docs" / "subject" / "page.md").write_text("line\n" * 282)
    assert tree()["lines of the pages in docs"].value == PAGE_LINES + 1
    assert not tree()["lines of the pages in docs"].kept


def test_a_method_has_one_parameter_less_than_it_lists(tree):
    source = "class A:\n    def f(self, a, b, c, d, e, f, g, h): pass\n"
    assert tree(isa__machine=source)["functions of more than 8 parameters"].kept


def test_a_module_without_a_public_surface_is_named(tree):
    found = tree(isa__machine="class Machine: pass\n", isa__private="def _f(): pass\n")
    assert found["modules with public names and without __all__"].causes == ("isa/machine.py",)


def test_file_names_may_repeat_between_rtl_and_sim_alone(tree):
    assert tree(rtl__load="", sim__timing__load="")["file names used more than once"].kept
    assert not tree(isa__load="")["file names used more than once"].kept


def test_circles_of_modules_and_of_folders_are_found(tree):
    found = tree(isa__a="import tilewright.sim.b\n", sim__b="import tilewright.isa.a\n")
    assert found["circles of modules"].causes == ("tilewright.isa.a tilewright.sim.b",)
    assert found["circles of folders"].causes == ("isa sim",)
    later = tree(sim__b="def f():\n    import tilewright.isa.a\n")
    assert later["circles of modules"].kept
    assert not later["circles of folders"].kept


def test_the_closure_of_a_module_holds_the_packages_above_it():
    assert closure("a.b", {"a.b": {"c.d"}, "c.d": set()}) == {"a", "a.b", "c", "c.d"}


def test_circles_are_the_strongly_connected_groups():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [{"b", "c"}]


@pytest.mark.parametrize("source", [
    "with pytest.raises(E, match=r'^Engine must be one of rtl, fast, not .slow.$'): run()\n",
    """@pytest.mark.parametrize(('x', 'said'), [(1, 'Engine must be one of rtl, fast, not slow')])
def test_it(x, said):
    with pytest.raises(E, match=said): run()
""",
])
def test_a_sentence_that_a_test_pins_is_counted_outside_the_files_for_wording(tree, source):
    name = "sentences of errors pinned outside test_wording files"
    assert tree(tests__isa__test_wording_isa=source)[name].kept
    assert tree(tests__isa__test_facts="with pytest.raises(E, match=r'Engine .*slow'): run()\n")[name].kept
    (cause,) = tree(tests__isa__test_machine=source)[name].causes
    assert cause.startswith("tests/isa/test_machine.py:1")
