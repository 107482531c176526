"""The project's Python modules as the checks of its structure see them: paths, syntax trees, imports."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import resolve_name
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "tilewright"
_APART = {"docs", "tests", "build", "dist", "out", PACKAGE}


@dataclass(frozen=True)
class Module:
    """A module of the package; ``path`` is relative to the root, such as ``isa/machine.py``."""

    root: Path
    path: str

    @property
    def folder(self) -> str:
        """The folder it lies in; ``tilewright`` for the package's own files."""
        return str(PurePosixPath(self.path).parent)

    @property
    def name(self) -> str:
        """Its import name."""
        return dotted(self.path)

    @cached_property
    def text(self) -> str:
        """Its source."""
        return (self.root / self.path).read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)


def dotted(path: str) -> str:
    """Return the import name of a module's path: ``isa/machine.py`` is ``tilewright.isa.machine``."""
    parts = PurePosixPath(path).with_suffix("").parts
    parts = parts if parts[0] in (PACKAGE, "tests") else (PACKAGE, *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(root: Path = ROOT) -> list[Module]:
    """Return the package's modules without tests, in order of their paths."""
    return [Module(root, path) for path in sorted(_paths(root))]


def _paths(root: Path) -> Iterator[str]:
    for path in (root / PACKAGE).glob("*.py"):
        yield str(path.relative_to(root))
    for folder in root.iterdir():
        if folder.is_dir() and folder.name not in _APART and not folder.name.startswith("."):
            yield from (str(path.relative_to(root)) for path in folder.rglob("*.py"))


def imported(source: str, path: str, *, lazy: bool = True) -> set[str]:
    """Return the dotted names that ``source``, the text of ``path``, imports.

    ``from tilewright import sim`` counts as ``tilewright.sim``; relative imports are resolved. Without ``lazy``,
    only imports that run with the module count: none in functions, none under ``TYPE_CHECKING``.
    """
    package = dotted(path) if path.endswith("__init__.py") else dotted(path).rpartition(".")[0]
    names = set()
    for node in _statements(ast.parse(source), lazy=lazy):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def _statements(tree: ast.AST, *, lazy: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        if lazy or not later:
            yield node
            yield from _statements(node, lazy=lazy)


def import_edges(found: list[Module], *, lazy: bool = True) -> dict[str, set[str]]:
    """Return which modules each module imports, by their import names; a package counts as its ``__init__``."""
    names = {module.name for module in found}
    edges: dict[str, set[str]] = {}
    for module in found:
        edges[module.name] = set()
        for name in imported(module.text, module.path, lazy=lazy):
            while name and name not in names:
                name = name.rpartition(".")[0]
            if name and name != module.name:
                edges[module.name].add(name)
    return edges


def closure(name: str, edges: dict[str, set[str]]) -> set[str]:
    """Return ``name`` and every module that importing it imports, packages above a module included."""
    found: set[str] = set()
    todo = [name]
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo += edges.get(each, ())
            if "." in each:
                todo.append(each.rpartition(".")[0])
    return found


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected groups of more than one node (Tarjan, SIAM J. Comput. 1(2), 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for after in sorted(edges.get(node, ())):
            if after not in index:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], index[after])
        if low[node] == index[node]:
            group = set(stack[stack.index(node):])
            del stack[stack.index(node):]
            if len(group) > 1:
                found.append(group)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found
