"""Every error of the project has one base class, and the package exports what users need without loading it all."""

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright import errors

ROOT = Path(__file__).parent.parent
FOLDERS = ("bench", "cli", "compiler", "energy", "hardware", "isa", "models", "rtl", "runtime", "sim", "tilewright",
           "tools")


def exceptions() -> dict[str, tuple[str, set[str]]]:
    """Return the project's classes by name that have an exception among their bases: the file, and the bases."""
    classes = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                    classes[node.name] = str(path.relative_to(ROOT)), bases
    found: set[str] = set()
    while True:
        more = {name for name, (_, bases) in classes.items()
                if name not in found and any(base in found or _is_builtin(base) for base in bases)}
        if not more:
            return {name: classes[name] for name in found}
        found |= more


def _is_builtin(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, Warning)


def test_every_exception_derives_from_the_one_base():
    found = exceptions()
    assert len(found) > 25
    own = {"Error"}
    while more := {name for name, (_, bases) in found.items() if name not in own and bases & own}:
        own |= more
    assert sorted(set(found) - own) == []


@pytest.mark.parametrize("kind", ["InputError", "CompileError", "SimulationError", "ToolError", "InternalError"])
def test_a_user_can_catch_every_kind_at_once(kind):
    with pytest.raises(tilewright.Error, match=r"^nothing works$") as caught:
        raise getattr(tilewright, kind)("nothing works")
    assert caught.value.sentence == "nothing works"


def test_a_compile_error_says_what_to_do():
    assert errors.CompileError("it is broken", "mend it").sentence == "it is broken; mend it"


def test_every_public_name_is_there_and_unknown_ones_are_refused():
    assert [name for name in tilewright.__all__ if not hasattr(tilewright, name)] == []
    assert set(tilewright.__all__) <= set(dir(tilewright))
    with pytest.raises(AttributeError, match=r"^Module 'tilewright' has no attribute 'Sesion'$"):
        tilewright.Sesion  # noqa: B018 -- the lookup raises


def test_importing_the_package_loads_nothing_but_the_version():
    code = "import sys, tilewright; print(sorted(name for name in sys.modules if name.startswith('tilewright')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "['tilewright', 'tilewright._version']"


def test_a_word_that_is_like_one_that_is_known_is_told_so():
    assert errors.nearest("resnet18_32", ["resnet18-32", "vgg16-32"]) == "; resnet18-32 is near"
    assert errors.nearest("quux", ["resnet18-32", "vgg16-32"]) == ""
