"""Figures of the project's structure, and the limits that `make lint` holds them to."""

import ast
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.structure.source import Module, circles, closure, import_edges, modules

REPORT = re.compile(r"tilewright\.runtime\.(execution\.)?report")
FOLDER_LIMIT, FUNCTION_LINES, PARAMETERS, DEPTH, FILE_LINES = 16, 60, 8, 5, 500
PAGE_LINES = 9212
"""Lines of all pages in docs/: fewer than when decisions were one file. New text takes the place of old."""

FACT_WORDS = 6
"""A test names what an error must name in so many words at most; more of them pin its wording."""

WORDING = ("test_wording_*.py", "test_errors.py")
"""Tests that pin sentences."""

MIRRORED = ("rtl", "sim")
"""File names may repeat where rtl and sim mean the same unit: the hardware and its model."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure by name, its value, the most it may be (None: only shown), and what makes it so large."""

    name: str
    value: float
    limit: float | None
    causes: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Tell whether the figure is within its limit."""
        return self.limit is None or self.value <= self.limit


def figures(root: Path) -> list[Figure]:
    """Return the figures that follow from the source alone."""
    found = modules(root)
    return [*_folders(found), *_names(found), *_surface(found), *_functions(found), *_imports(found), *_wording(root),
            Figure("lines of the pages in docs", sum(_lines(page) for page in root.glob("docs/**/*.md")), PAGE_LINES),
            Figure("lines of Python outside tests", sum(module.text.count("\n") for module in found), None)]


def _lines(page: Path) -> int:
    return page.read_text(encoding="utf-8").count("\n")


def _folders(found: list[Module]) -> Iterator[Figure]:
    sizes = Counter(module.folder for module in found if not module.path.endswith("__init__.py"))
    folder, most = sizes.most_common(1)[0]
    yield Figure("modules in the fullest folder", most, FOLDER_LIMIT, (folder,))
    full = tuple(f"{folder}: {size}" for folder, size in sizes.items() if size > 20)
    yield Figure("folders of more than 20 modules", len(full), 0, full)
    long = tuple(f"{module.path}: {lines}" for module in found if (lines := module.text.count("\n")) > FILE_LINES)
    yield Figure(f"files of more than {FILE_LINES} lines", len(long), 0, long)


def _names(found: list[Module]) -> Iterator[Figure]:
    places: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for module in found:
        if not PurePosixPath(module.path).stem.startswith("__"):
            places[PurePosixPath(module.path).name].append(module.path)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(module.path)
    files = tuple(f"{name}: {', '.join(where)}" for name, where in sorted(places.items())
                  if len(where) > 1 and not _mirrored(where))
    yield Figure("file names used more than once", len(files), 0, files)
    named = tuple(f"{name}: {', '.join(where)}" for name, where in sorted(classes.items())
                  if len(where) > 1 and not _mirrored(where))
    yield Figure("class names used more than once", len(named), 0, named)


def _mirrored(paths: list[str]) -> bool:
    return sorted(path.partition("/")[0] for path in paths) == sorted(MIRRORED)


def _surface(found: list[Module]) -> Iterator[Figure]:
    silent = tuple(module.path for module in found if _defines_public(module.tree) and not _lists_public(module.tree))
    yield Figure("modules with public names and without __all__", len(silent), 0, silent)


def _defines_public(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_") for node in tree.body)


def _lists_public(tree: ast.Module) -> bool:
    return any(isinstance(name, ast.Name) and name.id == "__all__" for node in tree.body
               for name in (node.targets if isinstance(node, ast.Assign) else
                            (node.target,) if isinstance(node, ast.AnnAssign) else ()))


def _functions(found: list[Module]) -> Iterator[Figure]:
    wide, long, deep = [], [], []
    for module in found:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            where = f"{module.path}:{node.lineno} {node.name}"
            if (count := _parameters(node)) > PARAMETERS:
                wide.append(f"{where}: {count}")
            if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES:
                long.append(f"{where}: {lines}")
            if (levels := _depth(node)) > DEPTH:
                deep.append(f"{where}: {levels}")
    yield Figure(f"functions of more than {PARAMETERS} parameters", len(wide), 0, tuple(wide))
    yield Figure(f"functions of more than {FUNCTION_LINES} lines", len(long), 0, tuple(long))
    yield Figure(f"functions nested deeper than {DEPTH} levels", len(deep), 0, tuple(deep))


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _depth(node: ast.AST, level: int = 0) -> int:
    inner = (_depth(child, level + isinstance(child, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.Match))
             for child in ast.iter_child_nodes(node))
    return max((level, *inner))


def _imports(found: list[Module]) -> Iterator[Figure]:
    edges = import_edges(found, lazy=False)
    groups = circles(edges)
    yield Figure("circles of modules", len(groups), 0, tuple(" ".join(sorted(group)) for group in groups))
    folder = {module.name: module.folder for module in found}
    above = defaultdict(set)
    for name, others in import_edges(found).items():
        above[folder[name]] |= {folder[other] for other in others
                                if folder[other] != folder[name] and folder[other] != "tilewright"}
    groups = circles(dict(above))
    yield Figure("circles of folders", len(groups), 0, tuple(" ".join(sorted(group)) for group in groups))
    (report,) = (module.name for module in found if REPORT.fullmatch(module.name))
    # Function-level imports count; the package's own __init__ imports every public name when it is asked for.
    reached = closure(report, import_edges(found) | {"tilewright": set()}) - {
        module.name for module in found if module.path.endswith("__init__.py")}
    yield Figure("modules that Report reaches", len(reached), 12, tuple(sorted(reached)))


def _wording(root: Path) -> Iterator[Figure]:
    """Yield how many sentences tests pin outside the files that are for it: long texts of ``match=``."""
    pinned = tuple(f"{path.relative_to(root)}:{line}" for path in sorted((root / "tests").rglob("test_*.py"))
                   if not any(path.match(name) for name in WORDING)
                   for line, text in matches(ast.parse(path.read_text(encoding="utf-8")))
                   if len(re.findall(r"[A-Za-z][\w'-]*", re.sub(r"\\[a-zA-Z]", " ", text))) > FACT_WORDS)
    yield Figure("sentences of errors pinned outside test_wording files", len(pinned), 0, pinned)


def matches(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each literal that is given as ``match=``, by itself or by a parameter of the test."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "match":
            yield from _literals(node.value)
        if isinstance(node, ast.FunctionDef):
            used = {inner.value.id for inner in ast.walk(node)
                    if isinstance(inner, ast.keyword) and inner.arg == "match" and isinstance(inner.value, ast.Name)}
            for decorator in node.decorator_list:
                yield from (each for value in _parameter_values(decorator, used) for each in _literals(value))


def _parameter_values(decorator: ast.expr, names: set[str]) -> Iterator[ast.expr]:
    """Yield the values that ``pytest.mark.parametrize`` gives to parameters of these names."""
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith(".parametrize"):
        return
    given, table, *_ = decorator.args
    several = isinstance(given, ast.Tuple)
    parameters = [ast.literal_eval(each) for each in given.elts] if isinstance(given, ast.Tuple) else [
        ast.literal_eval(given)]
    for row in table.elts if isinstance(table, ast.List) else ():
        values = row.elts if several and isinstance(row, ast.Tuple) else [row]
        yield from (value for name, value in zip(parameters, values, strict=False) if name in names)


def _literals(value: ast.expr) -> Iterator[tuple[int, str]]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.lineno, value.value
    elif isinstance(value, ast.JoinedStr):
        yield value.lineno, "".join(str(part.value) for part in value.values if isinstance(part, ast.Constant))


def compile_walk(root: Path) -> list[Figure]:
    """Return how many modules a compilation of LeNet-5 passes through, and how often it goes from one to another."""
    walked = _printed(root, _WALK)
    rooms, moves = map(int, walked.split())
    return [Figure("modules that `tilewright compile lenet5` enters", rooms, None),
            Figure("moves between modules on its way", moves, None)]


def start_times(root: Path) -> list[Figure]:
    """Return the seconds that ``--help`` and ``isa`` take: the best of three."""
    return [Figure(f"seconds of tilewright {command}", round(min(_seconds(root, command) for _ in range(3)), 2), None)
            for command in ("--help", "isa")]


def _seconds(root: Path, command: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tilewright", command], cwd=root, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _printed(root: Path, program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout


_WALK = """
import sys, tempfile
from runpy import run_module

trail = []
def profile(frame, event, _):
    name = frame.f_globals.get("__name__") or ""
    inside = event == "call" and name.startswith("tilewright.") and frame.f_code.co_flags & 2  # a function's frame
    if inside and (not trail or trail[-1] != name):
        trail.append(name)

with tempfile.TemporaryDirectory() as folder:
    sys.argv = ["tilewright", "compile", "lenet5", "-o", folder + "/out"]
    sys.path.insert(0, "")
    sys.stdout, out = open("/dev/null", "w"), sys.stdout
    sys.setprofile(profile)
    try:
        run_module("tilewright", run_name="__main__")
    except SystemExit:
        sys.setprofile(None)
print(len(set(trail)), len(trail), file=out)
"""
