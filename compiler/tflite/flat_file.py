"""Read a .tflite file, which is untrusted: nothing outside of it is read, and every number is checked before its use.

The schema's tables are read by the package ``tflite`` (https://github.com/zhenhuaw-me/tflite), which looks up offsets
in the file's own bytes; Python's and NumPy's checks of these end in a sentence here.
"""

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tflite

from tilewright.compiler.errors import BadModelError, ModelTooLargeError, UnsupportedModelError
from tilewright.compiler.tflite.stored.branches import with_branches_inlined
from tilewright.compiler.tflite.stored.schema_options import OPTIONS, RAW_OPTIONS, TEXTS, VECTORS
from tilewright.compiler.tflite.stored.sparse import SparsityError, dense
from tilewright.compiler.tflite.stored.tensors import TfliteModel, TfliteOperator, TfliteTensor
from tilewright.compiler.tflite.variables import INITIALISER, READ, VARIABLE, WRITE, with_open_state

__all__ = ["read_file"]

_DAMAGE = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError, MemoryError, KeyError)
"""Errors that Python and NumPy raise at offsets, lengths and numbers that no table has."""

_MAX_TENSOR_BYTES = 2**30
_MAX_RANK = 8
_MOST_GRAPHS = 64
"""Subgraphs that branches name, which end a ring of them, too."""
_LONGEST_NAME = 1900
"""In characters: a sentence still says more than one, and names of fused operators are some hundred long."""
_NAMES = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
_BUILTIN_CODE = 10
"""Place of the field in the table of an operator code: the fourth."""
_TYPES = {value: name for name, value in vars(tflite.TensorType).items() if isinstance(value, int)}
_UNIONS = {name: value for name, value in vars(tflite.BuiltinOptions).items() if isinstance(value, int)}
_DTYPES = {"FLOAT32": "float32", "FLOAT16": "float16", "INT32": "int32", "UINT8": "uint8", "INT64": "int64",
           "BOOL": "bool", "INT16": "int16", "INT8": "int8"}
_FOUR_BITS = "INT4"
_ENDS = {"INT8": np.iinfo(np.int8), "UINT8": np.iinfo(np.uint8), _FOUR_BITS: np.iinfo(np.int8)}


def read_file(content: bytes, subject: str) -> TfliteModel:
    """Return what the first subgraph of a .tflite file says; its variables are inputs and outputs.

    Parameters
    ----------
    content : bytes
        The whole file.
    subject : str
        Begins sentences: ``Model 'net.tflite'``.

    Raises
    ------
    CompileError
        If the file is cut short or damaged, contradicts itself, or holds what is not compiled as a whole.
    """
    try:
        return _FlatFile(content, subject).model()
    except _DAMAGE as error:
        raise BadModelError(f"{subject} must be a .tflite file, and this one of {len(content)} bytes is cut short or "
                            "damaged", "copy or convert it again") from error


class _FlatFile:
    def __init__(self, content: bytes, subject: str) -> None:
        self._content, self._subject = content, subject
        self._file = tflite.Model.GetRootAsModel(content, 0)
        self._graphs = self._count(self._file.SubgraphsLength(), "subgraphs")
        self._inlined = 0

    def model(self) -> TfliteModel:
        if not self._graphs:
            raise self._damaged("it has no subgraph")
        model = self._graph(0)
        if not model.operators:
            raise self._damaged("it has no operators")
        if not model.outputs or len(set(model.inputs)) != len(model.inputs):
            raise self._damaged("it must have outputs, and each input once")
        self._check_order(model)
        model = with_branches_inlined(model, self._named, (VARIABLE, READ, WRITE, INITIALISER))
        self._check_order(model)
        return with_open_state(model, {number: self._graph(number) for number in self._initialisers(model)})

    def _named(self, operator: TfliteOperator, number: int) -> TfliteModel:
        """Return the subgraph that an operator names; an error if it has none, or there are too many."""
        if not 0 < number < self._graphs:
            raise self._damaged(f"operator {operator.index} ({operator.kind}) names subgraph {number} of "
                                f"{self._graphs}")
        if self._inlined > _MOST_GRAPHS:
            raise operator.refusal(f"more than {_MOST_GRAPHS} branches are in one another", "convert it without them")
        self._inlined += 1
        return self._graph(number)

    def _initialisers(self, model: TfliteModel) -> list[int]:
        """Return the numbers of the subgraphs that run once."""
        found = [int(each.options["InitSubgraphIndex"]) for each in model.operators if each.kind == INITIALISER]
        for each in found:
            if not 0 < each < self._graphs:
                raise self._damaged(f"subgraph {each} of {self._graphs} shall run once")
        return found

    def _graph(self, number: int) -> TfliteModel:
        graph = self._file.Subgraphs(number)
        names: set[str] = set()
        tensors = tuple(self._tensor(graph.Tensors(index), index, names)
                        for index in range(self._count(graph.TensorsLength(), "tensors")))
        codes = [self._kind(self._file.OperatorCodes(index))
                 for index in range(self._count(self._file.OperatorCodesLength(), "operator codes"))]
        operators = tuple(self._operator(graph.Operators(index), index, codes, tensors)
                          for index in range(self._count(graph.OperatorsLength(), "operators")))
        inputs = self._indices(graph.InputsLength(), graph.Inputs, tensors, "an input of the model", least=0)
        outputs = self._indices(graph.OutputsLength(), graph.Outputs, tensors, "an output of the model", least=0)
        return TfliteModel(tensors=tensors, operators=operators, inputs=inputs, outputs=outputs)

    def _damaged(self, what: str) -> BadModelError:
        return BadModelError(f"{self._subject} contradicts itself: {what}", "copy or convert it again")

    def _count(self, count: int, what: str) -> int:
        """Return a length that the file states, which its bytes can hold."""
        if not 0 <= count <= len(self._content) // 4:
            raise self._damaged(f"it states {count} {what} in {len(self._content)} bytes")
        return count

    def _indices(self, count: int, get: Callable[[int], int], tensors: tuple[TfliteTensor, ...], what: str,
                 least: int) -> tuple[int, ...]:
        found = tuple(int(get(position)) for position in range(self._count(count, f"of {what}")))
        for each in found:
            if not least <= each < len(tensors):
                raise self._damaged(f"{what} is tensor {each} of {len(tensors)}")
        return found

    def _kind(self, code: Any) -> str:
        """Return the name of an operator; of a custom one, that of its maker."""
        # As LiteRT does (GetBuiltinCode): some writers fill one field, some both. The schema's own BuiltinCode() leaves
        # out what is below 127.
        field = code._tab.Offset(_BUILTIN_CODE)
        new = struct.unpack_from("<i", code._tab.Bytes, field + code._tab.Pos)[0] if field else 0
        number = max(int(code.DeprecatedBuiltinCode()), new)
        if number == tflite.BuiltinOperator.CUSTOM:
            name = code.CustomCode()
            return f"custom {name.decode(errors='replace'):.60}" if name else "custom"
        return _NAMES.get(number, f"number {number}")

    def _tensor(self, tensor: Any, index: int, names: set[str]) -> TfliteTensor:
        given = (tensor.Name() or b"").decode(errors="replace") or f"tensor {index}"
        if len(given) > _LONGEST_NAME:
            raise self._damaged(f"the name of tensor {index} has {len(given):,} characters")
        name = given if given not in names else f"{given} ({index})"
        names.add(name)
        kind = _TYPES.get(tensor.Type(), f"type {tensor.Type()}")
        extents = [int(tensor.Shape(axis)) for axis in range(self._count(tensor.ShapeLength(), "axes"))]
        if len(extents) > _MAX_RANK:
            raise UnsupportedModelError(f"Tensor {name!r} ({index}) must have at most {_MAX_RANK} axes, not "
                                        f"{len(extents)}", "convert the model with fewer")
        shape = tuple(1 if axis == 0 and extent < 0 else extent for axis, extent in enumerate(extents))
        if any(extent < 0 for extent in shape):
            raise UnsupportedModelError(f"Tensor {name!r} ({index}) must have a fixed shape, not {extents}",
                                        "convert the model with fixed input shapes")
        if 8 * math.prod(shape) > _MAX_TENSOR_BYTES * 8:
            raise ModelTooLargeError(f"Tensor {name!r} ({index}) must have at most {_MAX_TENSOR_BYTES} elements, not "
                                     f"{math.prod(shape)}")
        scales, zeros, axis = self._quantisation(tensor, name, index, shape)
        ends = _ENDS.get(kind)
        if ends is not None and any(not ends.min <= zero <= ends.max for zero in zeros):
            raise self._damaged(f"a zero point of tensor {name!r} ({index}) is none of its levels")
        data = self._data(tensor, kind, shape, f"Tensor {name!r} ({index})")
        dtype = "int8" if kind == _FOUR_BITS else _DTYPES.get(kind, kind.lower())
        return TfliteTensor(index=index, name=name, shape=shape, dtype=dtype, scales=scales, zeros=zeros, axis=axis,
                            data=data)

    def _quantisation(self, tensor: Any, name: str, index: int, shape: tuple[int, ...],
                      ) -> tuple[np.ndarray, np.ndarray, int]:
        stated = tensor.Quantization()
        count = 0 if stated is None else self._count(stated.ScaleLength(), "scales")
        if stated is None or not count:
            return np.zeros(0, np.float32), np.zeros(0, np.int64), 0
        scales = np.array([stated.Scale(each) for each in range(count)], np.float32)
        known = self._count(stated.ZeroPointLength(), "zero points")
        zeros = np.array([stated.ZeroPoint(each) for each in range(known)] or [0] * count, np.int64)
        axis = int(stated.QuantizedDimension()) if count > 1 else 0
        if not (np.isfinite(scales) & (scales > 0)).all():
            wrong = scales[~(np.isfinite(scales) & (scales > 0))][0]
            raise self._damaged(f"a scale of tensor {name!r} ({index}) is {wrong}, and must be positive")
        if zeros.size not in (1, count) or (count > 1 and not (
                0 <= axis < len(shape) and shape[axis] == count)):
            raise self._damaged(f"tensor {name!r} ({index}) of the shape {list(shape)} has {count} scales and "
                                f"{zeros.size} zero points along axis {axis}")
        return scales, np.resize(zeros, count), axis

    def _data(self, tensor: Any, kind: str, shape: tuple[int, ...], subject: str) -> np.ndarray | None:
        buffer, count = tensor.Buffer(), self._count(self._file.BuffersLength(), "buffers")
        if not 0 <= buffer < count:
            raise self._damaged(f"{subject} has buffer {buffer} of {count}")
        stored = self._file.Buffers(buffer)
        if stored.Offset() or stored.Size():
            raise UnsupportedModelError(f"{subject} must have its data in the file's buffers, and has them behind the "
                                        "model", "convert the model again, below 2 GB")
        size = stored.DataLength()
        if not size:
            return None
        if not 0 < size <= len(self._content):
            raise self._damaged(f"{subject} has {size} bytes in a file of {len(self._content)}")
        raw = stored.DataAsNumpy()
        elements = math.prod(shape)
        if (sparsity := tensor.Sparsity()) is not None:
            return self._sparse(sparsity, raw, kind, shape, subject)
        if kind == _FOUR_BITS:
            wanted = -(-elements // 2)
        elif kind in _DTYPES:
            wanted = elements * np.dtype(_DTYPES[kind]).itemsize
        else:
            raise UnsupportedModelError(f"{subject} must hold numbers of at most 64 bits, not {kind}",
                                        "convert the model without it")
        if size != wanted:
            raise self._damaged(f"{subject} of the shape {list(shape)} and type {kind} has {size} bytes, not {wanted}")
        if kind == _FOUR_BITS:
            return _nibbles(raw)[:elements].reshape(shape)
        return _numbers(raw, kind).reshape(shape)

    def _sparse(self, sparsity: Any, raw: np.ndarray, kind: str, shape: tuple[int, ...], subject: str) -> np.ndarray:
        """Return the whole of a constant of which the file keeps what is not zero."""
        if kind not in _DTYPES:
            raise UnsupportedModelError(f"{subject} is sparse, and must be one of {', '.join(_DTYPES.values())}, not "
                                        f"{kind}", "convert the model without sparsity")
        if raw.size % np.dtype(_DTYPES[kind]).itemsize:
            raise self._damaged(f"{subject}, which is sparse, has {raw.size} bytes of {kind}")
        try:
            return dense(sparsity, _numbers(raw, kind), shape)
        except SparsityError as error:
            raise self._damaged(f"{subject} is sparse, and {error}") from error

    def _operator(self, operator: Any, index: int, codes: list[str],
                  tensors: tuple[TfliteTensor, ...]) -> TfliteOperator:
        code = int(operator.OpcodeIndex())
        if not 0 <= code < len(codes):
            raise self._damaged(f"operator {index} is of code {code} of {len(codes)}")
        what = f"of operator {index} ({codes[code]})"
        inputs = self._indices(operator.InputsLength(), operator.Inputs, tensors, f"an input {what}", least=-1)
        outputs = self._indices(operator.OutputsLength(), operator.Outputs, tensors, f"an output {what}", least=0)
        label = f"{index}: {tensors[outputs[0]].name}" if outputs else str(index)
        return TfliteOperator(index=index, kind=codes[code], inputs=inputs, outputs=outputs, label=label,
                              options=self._options(operator, codes[code], what))

    def _options(self, operator: Any, kind: str, what: str) -> dict[str, Any]:
        if kind in RAW_OPTIONS:
            return self._raw_options(operator, kind, what)
        if kind not in OPTIONS:
            return {}
        table, names = OPTIONS[kind]
        stated, given = operator.BuiltinOptions(), int(operator.BuiltinOptionsType())
        if stated is None and not names:
            return {}
        if stated is not None and given != _UNIONS[table]:
            raise self._damaged(f"the options {what} are of type {given}, not {table}")
        if stated is None:
            raise self._damaged(f"the options {what} are missing")
        options = getattr(tflite, table)()
        options.Init(stated.Bytes, stated.Pos)
        found: dict[str, Any] = {}
        for name in names:
            if name in VECTORS:
                count = self._count(getattr(options, f"{name}Length")(), name)
                found[name] = tuple(int(getattr(options, name)(each)) for each in range(count))
            else:
                value = getattr(options, name)()
                found[name] = (value or b"").decode(errors="replace") if name in TEXTS else value
        return found

    def _raw_options(self, operator: Any, kind: str, what: str) -> dict[str, Any]:
        """Return the options of a custom operator, which are whole numbers of 32 bits."""
        names = RAW_OPTIONS[kind]
        size = self._count(operator.CustomOptionsLength(), f"bytes of options {what}")
        if size < 4 * len(names):
            raise self._damaged(f"the options {what} have {size} bytes, not {4 * len(names)}")
        stored = bytes(operator.CustomOptions(each) for each in range(4 * len(names)))
        return dict(zip(names, struct.unpack(f"<{len(names)}i", stored), strict=True))

    def _check_order(self, model: TfliteModel) -> None:
        """Refuse operators that read what nothing has computed yet, and tensors that are written twice."""
        known = {tensor.index for tensor in model.tensors if tensor.data is not None}
        given = set(model.inputs)
        if known & given:
            raise self._damaged(f"tensor {min(known & given)} is an input and has a value")
        known |= given
        for operator in model.operators:
            for each in operator.inputs:
                if each >= 0 and each not in known and 0 not in model.tensors[each].shape:
                    raise self._damaged(f"operator {operator.index} ({operator.kind}) reads tensor "
                                        f"{model.tensors[each].name!r} ({each}), which nothing before it computes")
            for each in operator.outputs:
                if each in known:
                    raise self._damaged(f"operator {operator.index} ({operator.kind}) writes tensor "
                                        f"{model.tensors[each].name!r} ({each}), which has a value already")
            known.update(operator.outputs)
        if lost := _first(set(model.outputs) - known):
            raise self._damaged(f"its output {model.tensors[lost[0]].name!r} ({lost[0]}) is not computed")


def _first(indices: Iterable[int]) -> list[int]:
    return sorted(indices)[:1]


def _numbers(raw: np.ndarray, kind: str) -> np.ndarray:
    """Return the numbers in some bytes."""
    return np.frombuffer(raw.tobytes(), np.dtype(_DTYPES[kind]).newbyteorder("<")).astype(_DTYPES[kind])


def _nibbles(raw: np.ndarray) -> np.ndarray:
    """Return the int8 values of packed int4, the lower half of a byte first."""
    low, high = (raw.astype(np.int8) << 4) >> 4, raw.astype(np.int8) >> 4
    return np.stack([low, high], -1).reshape(-1).astype(np.int8)
