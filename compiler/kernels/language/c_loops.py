"""Nested C loops over strided tensors: dims of one vanish, and contiguous neighbours become one loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tilewright.compiler.kernels.language.c_expression import c_declarations, c_lines, ctype
from tilewright.compiler.kernels.language.expression import Expression, nodes, variable

__all__ = [
    "INDENT", "Dims", "Nest", "StridedElement", "broadcast_strides", "elementwise", "loops", "merged", "nest",
    "offset_text", "place", "row_major",
]

Dims = tuple[int, ...]
INDENT = "    "


@dataclass(frozen=True, slots=True)
class StridedElement:
    """An operand's element in a loop nest: ``pointer[offset + Σ index · stride]``, one stride per dim."""

    pointer: str
    strides: Dims
    offset: int = 0


def broadcast_strides(dims: Dims, strides: Dims, target: Dims) -> Dims:
    """Return the strides of a tensor of ``dims`` seen as ``target``: 0 where it is repeated."""
    missing = len(target) - len(dims)
    return (0,) * missing + tuple(0 if dim == 1 else stride for dim, stride in zip(dims, strides, strict=True))


def row_major(dims: Dims) -> Dims:
    """Return the strides of a tensor without gaps, the last dim fastest."""
    strides = []
    step = 1
    for dim in reversed(dims):
        strides.append(step)
        step *= dim
    return tuple(reversed(strides))


def merged(dims: Dims, strides: Sequence[Dims]) -> tuple[Dims, tuple[Dims, ...]]:
    """Return fewer dims that visit the same elements, and the operands' strides over them.

    ``strides`` has those of each operand over ``dims``. Outermost are the dims over which most operands vary (so that
    work on the others happens once per row), then those with the largest steps of the first operand.
    """
    axes = [axis for axis, dim in enumerate(dims) if dim != 1]
    axes.sort(key=lambda axis: (-sum(each[axis] != 0 for each in strides), -abs(strides[0][axis])))
    sizes: list[int] = []
    steps: list[tuple[int, ...]] = []
    for axis in axes:
        here = tuple(each[axis] for each in strides)
        if steps and all(outer == inner * dims[axis] for outer, inner in zip(steps[-1], here, strict=True)):
            sizes[-1] *= dims[axis]
            steps[-1] = here
        else:
            sizes.append(dims[axis])
            steps.append(here)
    return tuple(sizes), tuple(tuple(step[k] for step in steps) for k in range(len(strides)))


def place(access: StridedElement, indices: Sequence[str]) -> str:
    """Return the C text of an element."""
    return f"{access.pointer}[{offset_text(access.offset, access.strides, indices)}]"


def offset_text(offset: int, strides: Sequence[int], indices: Sequence[str]) -> str:
    """Return ``offset + Σ index · stride`` in C."""
    terms = [(index, stride) for index, stride in zip(indices, strides, strict=True)
             if stride and index != "0"]
    text = str(offset) if offset or not terms else ""
    for index, stride in terms:
        product = index if abs(stride) == 1 else f"{abs(stride)} * {index}"
        text += f"{' - ' if stride < 0 else ' + '}{product}" if text else f"{'-' if stride < 0 else ''}{product}"
    return text


def loops(dims: Dims, body: Callable[[list[str]], Iterable[str]], *, prefix: str = "i",
          before: Mapping[int, Sequence[str]] = MappingProxyType({}), unrolled: int = 1) -> list[str]:
    """Return loops over ``dims`` around the lines that ``body`` makes from the indices; that of a dim of one is 0.

    ``before[depth]`` are lines inside the first ``depth`` loops and outside the others. The innermost loop does
    ``unrolled`` steps at a time.
    """
    names = ["0" if dim == 1 else f"{prefix}{axis}" for axis, dim in enumerate(dims)]
    lines = [*before.get(len(dims), ()), *body(names)]
    for axis in reversed(range(len(dims))):
        if dims[axis] != 1:
            head = f"for (int32_t {names[axis]} = 0; {names[axis]} < {dims[axis]}; {names[axis]}++) {{"
            hint = [f'_Pragma("clang loop unroll_count({unrolled})")'] if unrolled > 1 else []
            lines, unrolled = [*hint, head, *(INDENT + line for line in lines), "}"], 1
        lines = [*before.get(axis, ()), *lines]
    return lines


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops of ``sizes`` in which ``result`` is stored at ``target`` for all indices.

    ``inputs`` and ``hoisted`` say, by the number of loops around, which inputs are loaded there, and which variables
    are computed there: what does not change in an inner loop is outside of it.
    """

    sizes: Dims
    target: StridedElement
    inputs: Mapping[int, list[tuple[str, str, StridedElement]]]
    hoisted: Mapping[int, list[tuple[str, Expression]]]
    result: Expression


def nest(dims: Dims, out: StridedElement, inputs: Mapping[str, StridedElement], result: Expression) -> Nest:
    """Return loops that store ``result`` for every element of ``out``; ``inputs`` locates its inputs."""
    sizes, strides = merged(dims, [out.strides, *(access.strides for access in inputs.values())])
    dtypes = {node.value: node.dtype for node in nodes(result) if node.op == "input"}
    depths: dict[str, int] = {}
    loads: dict[int, list[tuple[str, str, StridedElement]]] = {}
    for (name, access), steps in zip(inputs.items(), strides[1:], strict=True):
        if name in dtypes:
            depths[name] = max((axis + 1 for axis, step in enumerate(steps) if step), default=0)
            here = StridedElement(access.pointer, steps, access.offset)
            loads.setdefault(depths[name], []).append((name, dtypes[name], here))
    hoisted, final = _staged(result, depths, len(sizes))
    return Nest(sizes, StridedElement(out.pointer, strides[0], out.offset), loads, hoisted, final)


def elementwise(planned: Nest) -> list[str]:
    """Return the C of a nest."""
    names = [f"i{axis}" for axis in range(len(planned.sizes))]
    before = {}
    for depth in range(len(planned.sizes) + 1):
        loads = [f"const {ctype(dtype)} {name} = {place(access, names)};"
                 for name, dtype, access in planned.inputs.get(depth, ())]
        before[depth] = [*loads, *c_declarations(planned.hoisted.get(depth, ()))]
    lines, text = c_lines(planned.result)
    return loops(planned.sizes, lambda _: [*lines, f"{place(planned.target, names)} = {text};"], before=before)


def _staged(result: Expression, depths: Mapping[str, int],
            innermost: int) -> tuple[dict[int, list[tuple[str, Expression]]], Expression]:
    """Split ``result`` by the loop depth at which its inputs are known: variables by depth, and what is left."""
    known: dict[int, tuple[Expression, int]] = {}
    hoisted: dict[int, list[tuple[str, Expression]]] = {}

    def split(node: Expression) -> tuple[Expression, int]:
        if id(node) not in known:
            known[id(node)] = rewritten(node)
        return known[id(node)]

    def rewritten(node: Expression) -> tuple[Expression, int]:
        if not node.args:
            return node, depths.get(node.value, 0) if node.op == "input" else 0
        parts = [split(arg) for arg in node.args]
        depth = max(each for _, each in parts)
        args = tuple(arg if own == depth else outside(arg, own) for arg, own in parts)
        return Expression(node.op, node.dtype, args, node.value, node.label), depth

    def outside(node: Expression, depth: int) -> Expression:
        if not node.args:
            return node
        here = hoisted.setdefault(depth, [])
        for name, each in here:
            if each is node:
                return variable(name, node.dtype)
        name = node.label or f"row{depth}_{len(here)}"
        here.append((name, node))
        return variable(name, node.dtype)

    final, depth = split(result)
    return hoisted, final if depth == innermost else outside(final, depth)
