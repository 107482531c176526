"""Kernels of the host core in tests: calls made from arrays, their C run on this machine, ONNX Runtime's answer."""

import ctypes
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tilewright.compiler.kernels.language.c_helpers import helper_text
from tilewright.compiler.kernels.language.c_loops import row_major
from tilewright.compiler.kernels.language.kernel import CTYPES
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.isa.program import Call, Operand
from tilewright.runtime.oracle.onnx_runtime import Level, session

ABSENT = Operand(0, "", (), ())
FLAGS = ("-std=c17", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-sanitize=all", "-shared", "-fPIC", "-Wall", "-Wextra",
         "-Werror", "-Wno-unused-function")
TYPES = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
         "int16": TensorProto.INT16, "uint16": TensorProto.UINT16,
         "int32": TensorProto.INT32, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}


def strides_of(dims: Sequence[int], *, channels_last: bool) -> tuple[int, ...]:
    """Return the strides of a tensor without gaps, row by row or (of four dims) NHWC."""
    if channels_last and len(dims) == 4:
        n, c, h, w = row_major((dims[0], dims[2], dims[3], dims[1]))
        return n, w, c, h
    return row_major(tuple(dims))


def call_of(op: str, arrays: Sequence[np.ndarray | None], out_dims: Sequence[int], out_dtype: str,
            attrs: Mapping[str, Any] | None = None, *, channels_last: bool = False, known: bool = True,
            computed: bool = False) -> Call:
    """Return the call of a kernel on ``arrays``; the values of its parameters are taken out of them.

    ``known`` tells whether the inputs whose values the kernel makes use of are constants, ``computed`` whether the
    parameters that may be computed are.
    """
    attrs = dict(attrs or {})
    operands = []
    for position, array in enumerate(arrays):
        name = CORE_KERNELS[op].parameters.get(position)
        if computed and position in CORE_KERNELS[op].computable:
            name = None
        if array is not None and name:
            attrs[name] = array.tolist()
        if array is not None and known and position in CORE_KERNELS[op].values:
            attrs[CORE_KERNELS[op].values[position]] = array.tolist()
        operands.append(ABSENT if array is None or name else Operand(
            0, str(array.dtype), array.shape, strides_of(array.shape, channels_last=channels_last)))
    output = Operand(0, out_dtype, tuple(out_dims), strides_of(out_dims, channels_last=channels_last))
    return Call(op, tuple(operands), output, attrs)


def compute(call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
    """Return what the kernel's NumPy says; inputs that are parameters are left out."""
    kernel = CORE_KERNELS[call.kernel]
    assert kernel.refusal(call) is None, kernel.refusal(call)
    present = [array if operand.dtype else None for array, operand in zip(arrays, call.inputs, strict=True)]
    result = kernel.compute(call, present)
    assert (str(result.dtype), result.shape) == (call.output.dtype, call.output.dims)
    return result


def c_source(calls: Sequence[Call]) -> str:
    """Return C in which call k is ``void call<k>(in0, in1, .., out)``."""
    text = ["#include <stdint.h>", "#include <stddef.h>"]
    names: dict[str, None] = {}
    bodies = []
    for index, call in enumerate(calls):
        kernel = CORE_KERNELS[call.kernel]
        names.update(dict.fromkeys(kernel.helpers(call)))
        parameters = [f"const {CTYPES[each.dtype]} *in{position}" if each.dtype else f"const void *in{position}"
                      for position, each in enumerate(call.inputs)]
        parameters.append(f"{CTYPES[call.output.dtype]} *out")
        unused = [f"    (void)in{position};" for position in range(len(call.inputs))]
        bodies += [f"void call{index}({', '.join(parameters)})", "{", *unused,
                   *(f"    {line}" for line in kernel.c_body(call, f"call{index}")), "}"]
    return "\n".join([*text, helper_text(names), *bodies, ""])


@cache
def library(source: str) -> ctypes.CDLL:
    """Compile ``source`` for this machine and load it."""
    name = hashlib.sha256(source.encode()).hexdigest()[:16]
    with tempfile.TemporaryDirectory(prefix="tilewright-core-") as folder:     # which a loaded library needs no more
        file = Path(folder, f"{name}.c")
        file.write_text(source)
        shared = file.with_suffix(".so")
        done = subprocess.run([sys.executable, "-m", "ziglang", "cc", *FLAGS, str(file), "-o", str(shared)],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{file}\n{done.stderr}"
        return ctypes.CDLL(str(shared))


def run_c(calls: Sequence[Call], inputs: Sequence[Sequence[np.ndarray | None]]) -> list[np.ndarray]:
    """Return the results of the calls' C on this machine, one library for all of them."""
    loaded = library(c_source(calls))
    results = []
    for index, (call, arrays) in enumerate(zip(calls, inputs, strict=True)):
        buffers = [None if array is None or not operand.dtype else _memory(array, operand)
                   for array, operand in zip(arrays, call.inputs, strict=True)]
        out = np.full(_extent(call.output), 0xA5, np.uint8).repeat(np.dtype(call.output.dtype).itemsize)
        out = out.view(call.output.dtype)
        pointers = [ctypes.c_void_p(None if each is None else each.ctypes.data) for each in (*buffers, out)]
        getattr(loaded, f"call{index}")(*pointers)
        view = np.lib.stride_tricks.as_strided(
            out, call.output.dims, [step * out.itemsize for step in call.output.strides])
        results.append(view.copy())
    return results


def _extent(operand: Operand) -> int:
    return 1 + sum((dim - 1) * step for dim, step in zip(operand.dims, operand.strides, strict=True))


def _memory(array: np.ndarray, operand: Operand) -> np.ndarray:
    memory = np.zeros(_extent(operand), array.dtype)
    steps = [step * array.itemsize for step in operand.strides]
    np.lib.stride_tricks.as_strided(memory, operand.dims, steps)[...] = array
    return memory


def onnx_runtime(op: str, arrays: Sequence[np.ndarray | None], attrs: Mapping[str, Any] | None = None, *,
                 opset: int = 21, domain: str = "", outputs: int = 1) -> np.ndarray:
    """Return ONNX Runtime's first result of one node whose parameters are constants."""
    parameters = CORE_KERNELS[op].parameters
    names = ["" if array is None else f"x{position}" for position, array in enumerate(arrays)]
    constants = [helper.make_tensor(names[position], TYPES[str(array.dtype)], array.shape, array.ravel().tolist())
                 for position, array in enumerate(arrays) if array is not None and position in parameters]
    inputs = [helper.make_tensor_value_info(names[position], TYPES[str(array.dtype)], array.shape)
              for position, array in enumerate(arrays) if array is not None and position not in parameters]
    node = helper.make_node(op, names, [f"y{k}" for k in range(outputs)], domain=domain, **(attrs or {}))
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name="y0")], constants)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    runner = session(model.SerializeToString(), level=Level.ORT_DISABLE_ALL)
    feeds = {names[position]: np.asarray(array) for position, array in enumerate(arrays)
             if array is not None and position not in parameters}
    return np.asarray(runner.run(None, feeds)[0])


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays have the same dtype, dims and bits; NaN are all the same."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        number = ~(np.isnan(a) & np.isnan(b))
        return bool(np.array_equal(np.ascontiguousarray(a).view(np.uint32)[number],
                                   np.ascontiguousarray(b).view(np.uint32)[number]))
    return bool(np.array_equal(a, b))
