"""Matrix products: each element adds its products in the order of the inner dimension."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.compiler.kernels.language.c_expression import c_lines
from tilewright.compiler.kernels.language.c_loops import (
    Dims,
    StridedElement,
    broadcast_strides,
    loops,
    offset_text,
    place,
)
from tilewright.compiler.kernels.language.checked import (
    CheckedKernel,
    Refused,
    at_most,
    attribute,
    broadcast,
    operand,
    required,
)
from tilewright.compiler.kernels.language.core_cycles import START, expression_cycles
from tilewright.compiler.kernels.language.expression import Expression, evaluate, variable
from tilewright.compiler.kernels.operators.products import FLOAT, INTEGER, QUANTISED, Products
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand

__all__ = ["KERNELS", "Gemm", "MatMul"]


class MatMul(CheckedKernel):
    """A product of matrices, batched and broadcast as NumPy's, in one of the arithmetics."""

    def __init__(self, op: str, products: Products) -> None:
        self.op = op
        self.products = products
        self.exactness = "relative 1e-5 (sums in another order)" if products.floats else "exact"
        self.limits = "float32" if products.floats else "int8 uint8; zero points of the right side per column"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, {FLOAT: 2, INTEGER: 4, QUANTISED: 8}[self.products])
        dtype = self.products.output(call)
        a, b = call.inputs[self.products.x].dims, call.inputs[self.products.w].dims
        if not a or not b or a[-1] != (b[-2] if len(b) > 1 else b[0]):
            raise Refused(f"{self.op} must have matrices that fit, not {a!r} and {b!r}")
        self.products.per_channel(call, b[-1] if len(b) > 1 else 1)
        batch = broadcast(call, [a[:-2], b[:-2], ()])
        return dtype, batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        given = list(arrays)
        products = self.products
        a = products.operand(given, products.x, products.x_zero)
        b = products.operand(given, products.w, products.w_zero, (-1,))
        a = a[None] if a.ndim == 1 else a
        b = b[:, None] if b.ndim == 1 else b
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        total = np.zeros((*batch, a.shape[-2], b.shape[-1]), products.total)
        for k in range(a.shape[-1]):
            total = total + a[..., :, k, None] * b[..., k, None, :]
        return products.finished(call, total, given, (-1,)).reshape(call.output.dims)

    def c_body(self, call: Call, function: str) -> list[str]:
        products = self.products
        a, b = _matrix(call.inputs[products.x], 0), _matrix(call.inputs[products.w], 1)
        out = call.output
        batch = np.broadcast_shapes(a.dims[:-2], b.dims[:-2])
        dims = (*batch, a.dims[-2], b.dims[-1])
        steps = iter(out.strides)
        kept = [*batch, 0 if len(call.inputs[products.x].dims) == 1 else 1,
                0 if len(call.inputs[products.w].dims) == 1 else 1]
        target = tuple(next(steps) if each else 0 for each in kept)
        left = (*broadcast_strides(a.dims[:-2], a.strides[:-2], batch), a.strides[-2], 0)
        right = (*broadcast_strides(b.dims[:-2], b.strides[:-2], batch), 0, b.strides[-1])
        after, result = products.after(call)

        def element(indices: list[str]) -> list[str]:
            def term(inner: list[str]) -> list[str]:
                x = place(StridedElement(f"in{products.x}", (*left, a.strides[-1])), (*indices, *inner))
                w = place(StridedElement(f"in{products.w}", (*right, b.strides[-2])), (*indices, *inner))
                return [products.step(call, x, w)]

            return [*products.before(call, indices[-1]), products.start(None),
                    *loops((a.dims[-1],), term, prefix="k"), *after,
                    f"out[{offset_text(0, target, indices)}] = {result};"]

        return loops(dims, element)

    def helpers(self, call: Call) -> tuple[str, ...]:
        return self.products.helpers(call)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        each = call.inputs[self.products.x].dims[-1] * self.products.step_cycles(memory)
        return START + math.prod(call.output.dims) * (each + self.products.after_cycles(call, memory))


def _matrix(operand: Operand, missing: int) -> Operand:
    """Return a vector as a matrix of one row (``missing`` 0) or one column (1)."""
    if len(operand.dims) > 1:
        return operand
    dims, strides = ((1, *operand.dims), (0, *operand.strides)) if missing == 0 else \
        ((*operand.dims, 1), (*operand.strides, 0))
    return replace(operand, dims=dims, strides=strides)


class Gemm(CheckedKernel):
    """alpha * A B + beta * C, with either matrix transposed, and C broadcast."""

    op = "Gemm"
    limits = "float32"
    exactness = "relative 1e-5 (sums in another order)"

    def result(self, call: Call) -> tuple[str, Dims]:
        at_most(call, 3)
        dtype = FLOAT.output(call)
        a, b = self._matrices(call)
        if len(a.dims) != 2 or len(b.dims) != 2 or a.dims[1] != b.dims[0]:
            raise Refused(f"Gemm must have matrices that fit, not {a.dims!r} and {b.dims!r}")
        dims = (a.dims[0], b.dims[1])
        if operand(call, 2) is not None and broadcast(call, [required(call, 2, ("float32",)).dims, dims]) != dims:
            raise Refused(f"Gemm must have a third input that broadcasts to {dims!r}, not {call.inputs[2].dims!r}")
        self._finish(call)
        return dtype, dims

    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        a, b = arrays[0], arrays[1]
        assert a is not None
        assert b is not None
        a = a.T if attribute(call, "transA", 0) else a
        b = b.T if attribute(call, "transB", 0) else b
        total = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for k in range(a.shape[1]):
            total = total + a[:, k, None] * b[k, None, :]
        c = arrays[2] if len(arrays) > 2 and arrays[2] is not None else np.float32(0)
        return np.asarray(evaluate(self._finish(call), {"total": total, "c": c}))

    def c_body(self, call: Call, function: str) -> list[str]:
        a, b = self._matrices(call)
        lines, result = c_lines(self._finish(call))
        bias = operand(call, 2)

        def element(indices: list[str]) -> list[str]:
            row, column = indices

            def term(inner: list[str]) -> list[str]:
                return [FLOAT.step(call, f"in0[{offset_text(0, a.strides, (row, *inner))}]",
                                   f"in1[{offset_text(0, b.strides, (*inner, column))}]")]

            c = []
            if bias:
                steps = broadcast_strides(bias.dims, bias.strides, call.output.dims)
                c = [f"const float c = in2[{offset_text(0, steps, indices)}];"]
            return [FLOAT.start(None), *loops((a.dims[1],), term, prefix="k"), *c, *lines,
                    f"out[{offset_text(0, call.output.strides, indices)}] = {result};"]

        return loops(call.output.dims, element)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        a, _ = self._matrices(call)
        each = a.dims[1] * FLOAT.step_cycles(memory) + FLOAT.after_cycles(call, memory)
        return START + int(math.prod(call.output.dims) * (each + expression_cycles(self._finish(call))))

    def _finish(self, call: Call) -> Expression:
        alpha, beta = (float(attribute(call, name, 1)) for name in ("alpha", "beta"))
        total: Expression = variable("total", "float32")
        total = total if alpha == 1 else total * alpha
        if operand(call, 2) is None:
            return total
        c = variable("c", "float32")
        return total + (c if beta == 1 else c * beta)

    def _matrices(self, call: Call) -> tuple[Operand, Operand]:
        """Return both matrices as they are multiplied."""
        return (_transposed(call.inputs[0], attribute(call, "transA", 0)),
                _transposed(call.inputs[1], attribute(call, "transB", 0)))


def _transposed(operand: Operand, flag: int) -> Operand:
    return replace(operand, dims=operand.dims[::-1], strides=operand.strides[::-1]) if flag else operand


KERNELS = (MatMul("MatMul", FLOAT), MatMul("MatMulInteger", INTEGER), MatMul("QLinearMatMul", QUANTISED), Gemm())
