"""Small .tflite files, tensor by tensor and operator by operator, through the schema's own writing functions."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
import tflite

from tilewright.compiler.tflite.stored.schema_options import OPTIONS, TEXTS, VECTORS

__all__ = ["TfliteFile"]

_VERSION = 3


class TfliteFile:
    """Tensors are known by number, in the order in which they were added; shapes have channels last.

    All are of the first subgraph until `next_graph`, which has no inputs or outputs but those of `border`.
    """

    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(1 << 16)
        self._buffers = [self._table("Buffer")]
        self._graphs: list[tuple[list[int], list[int]]] = [([], [])]
        self._borders: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
        self._codes: list[str] = []
        self.shapes: list[tuple[int, ...]] = []

    @property
    def _tensors(self) -> list[int]:
        return self._graphs[-1][0]

    @property
    def _operators(self) -> list[int]:
        return self._graphs[-1][1]

    def next_graph(self) -> None:
        """Begin another subgraph."""
        self._graphs.append(([], []))

    def border(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """State inputs and outputs of the subgraph."""
        self._borders[len(self._graphs) - 1] = inputs, outputs

    def tensor(self, shape: Sequence[int], scale: float | Sequence[float] | None = None, zero: int = 0, *,
               dtype: str = "int8", data: np.ndarray | None = None, axis: int = 0, name: str = "",
               sparsity: int | None = None) -> int:
        """Add a tensor and return its number; with ``data`` it is a constant, with `sparsity` a sparse one."""
        builder, settings = self._builder, {}
        buffer = 0
        if data is not None:
            buffer = len(self._buffers)
            self._buffers.append(self._table("Buffer", Data=builder.CreateByteVector(data.tobytes())))
        if sparsity is not None:
            settings["Sparsity"] = sparsity
        if scale is not None:
            scales = np.atleast_1d(np.array(scale, np.float32))
            settings["Quantization"] = self._table(
                "QuantizationParameters", Scale=builder.CreateNumpyVector(scales),
                ZeroPoint=builder.CreateNumpyVector(np.full(scales.size, zero, np.int64)), QuantizedDimension=axis)
        self._tensors.append(self._table(
            "Tensor", Shape=builder.CreateNumpyVector(np.array(shape, np.int32)),
            Type=getattr(tflite.TensorType, dtype.upper()), Buffer=buffer,
            Name=builder.CreateString(name or f"t{len(self._tensors)}"), **settings))
        self.shapes.append(tuple(shape))
        return len(self._tensors) - 1

    def constant(self, values: np.ndarray, scale: float | Sequence[float] | None = None, axis: int = 0,
                 zero: int = 0) -> int:
        """Add a constant and return its number."""
        return self.tensor(values.shape, scale, zero, dtype=values.dtype.name, data=values, axis=axis)

    def sparsity(self, order: Sequence[int], blocks: Sequence[int],
                 levels: Sequence[int | tuple[np.ndarray, np.ndarray]]) -> int:
        """Add what a sparse tensor says of its places: each level's extent, or its segments and indices of bytes."""
        builder, made = self._builder, []
        for level in levels:
            if isinstance(level, int):
                made.append(self._table("DimensionMetadata", Format=tflite.DimensionType.DENSE, DenseSize=level))
                continue
            lists = [self._table("Uint8Vector", Values=builder.CreateByteVector(each.astype(np.uint8).tobytes()))
                     for each in level]
            kind = tflite.SparseIndexVector.Uint8Vector
            made.append(self._table(
                "DimensionMetadata", Format=tflite.DimensionType.SPARSE_CSR, ArraySegmentsType=kind,
                ArraySegments=lists[0], ArrayIndicesType=kind, ArrayIndices=lists[1]))
        return self._table(
            "SparsityParameters", TraversalOrder=builder.CreateNumpyVector(np.array(order, np.int32)),
            BlockMap=builder.CreateNumpyVector(np.array(blocks, np.int32)), DimMetadata=self._vector(made))

    def operator(self, kind: str, inputs: Sequence[int], outputs: Sequence[int], custom: bytes = b"",
                 **options: Any) -> None:
        """Add an operator; ``options`` by the schema's names, or ``custom`` ones of an operator that has a title."""
        builder, settings = self._builder, {}
        if custom:
            settings["CustomOptions"] = builder.CreateByteVector(custom)
        if kind not in self._codes:
            self._codes.append(kind)
        if kind in OPTIONS:
            table, _ = OPTIONS[kind]
            options = {name: builder.CreateNumpyVector(np.array(value, np.int32)) if name in VECTORS else
                       builder.CreateString(value) if name in TEXTS else value for name, value in options.items()}
            settings = {"BuiltinOptionsType": getattr(tflite.BuiltinOptions, table),
                        "BuiltinOptions": self._table(table, **options)}
        read, written = (builder.CreateNumpyVector(np.array(each, np.int32)) for each in (inputs, outputs))
        self._operators.append(self._table("Operator", OpcodeIndex=self._codes.index(kind), Inputs=read,
                                           Outputs=written, **settings))

    def content(self, inputs: Sequence[int], outputs: Sequence[int], *, both_codes: bool = True) -> bytes:
        """Return the file; its operators' numbers are in both fields that there are, or in the newer one alone."""
        builder, self._borders[0] = self._builder, (inputs, outputs)
        codes = [self._code(kind, both_codes) for kind in self._codes]
        graphs = [self._table(
            "SubGraph", Tensors=self._vector(tensors), Operators=self._vector(operators),
            Inputs=builder.CreateNumpyVector(np.array(self._borders.get(number, ([], []))[0], np.int32)),
            Outputs=builder.CreateNumpyVector(np.array(self._borders.get(number, ([], []))[1], np.int32)))
            for number, (tensors, operators) in enumerate(self._graphs)]
        model = self._table("Model", Version=_VERSION, OperatorCodes=self._vector(codes),
                            Subgraphs=self._vector(graphs), Buffers=self._vector(self._buffers),
                            Description=builder.CreateString("tilewright's tests"))
        builder.Finish(model, b"TFL3")
        return bytes(builder.Output())

    def _code(self, kind: str, both: bool) -> int:
        if kind.startswith("custom "):
            title = self._builder.CreateString(kind.removeprefix("custom "))
            return self._table("OperatorCode", BuiltinCode=tflite.BuiltinOperator.CUSTOM, CustomCode=title,
                               DeprecatedBuiltinCode=tflite.BuiltinOperator.CUSTOM, Version=1)
        number = getattr(tflite.BuiltinOperator, kind)
        old = {"DeprecatedBuiltinCode": min(number, 127)} if both else {}
        return self._table("OperatorCode", BuiltinCode=number, Version=1, **old)

    def _vector(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for each in reversed(offsets):
            self._builder.PrependUOffsetTRelative(each)
        return self._builder.EndVector()

    def _table(self, kind: str, **fields: Any) -> int:
        getattr(tflite, f"{kind}Start")(self._builder)
        for name, value in fields.items():
            getattr(tflite, f"{kind}Add{name}")(self._builder, value)
        return getattr(tflite, f"{kind}End")(self._builder)
