"""A quantised network as a .tflite file, for compilers that read nothing else, with unchanged weights and scales.

Such a file is for estimates: padding is one of TensorFlow's two kinds, which put the same number of pixels around an
image, at other sides where the stride is 2.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.compiler.network.layers import Layer, Network, Pair
from tilewright.errors import InputError

__all__ = ["TfliteWriter", "tflite_of"]

_VERSION = 3
"""Of the schema, which every .tflite file has."""

_WEIGHT_SCALE = 0.01
"""Of weights whose own scale the network does not keep apart: it is part of the requantisation's."""


def tflite_of(network: Network) -> bytes:
    """Return ``network`` as the content of a .tflite file.

    Raises
    ------
    InputError
        If it has layers that are not convolutions, sums, pooling or dense, or the package ``tflite`` is missing.
    """
    writer = TfliteWriter()
    (image,), (answer,) = network.inputs, network.outputs
    names = {image.name: writer.activation(image.name, image.shape, float(image.scale))}
    last = image.name
    for layer in network.layers:
        if not isinstance(layer, Layer) or layer.table is not None:
            raise InputError(f"Network for a .tflite file must have no table and nothing on the core: {layer.name}")
        scale = float(network.tensors[layer.output].scale)
        source = names.get(layer.input, names[last])
        source = writer.reshaped(source, layer.in_shape)
        relu = layer.requantisation.low == 0
        x = _sum(writer, layer, source, scale, relu=relu and layer.residual is None)
        if layer.residual is not None:
            x = writer.operator("ADD", "AddOptions", [x, names[layer.residual.tensor]], layer.conv_shape, scale,
                                FusedActivationFunction=int(layer.residual.low == 0))
        if layer.pool is not None:
            x = writer.operator("MAX_POOL_2D", "Pool2DOptions", [x], layer.out_shape, scale,
                                **_window(layer.pool.kernel, layer.pool.strides, any(layer.pool.pads)))
        names[layer.output] = x
        last = layer.output
    return writer.content(names[image.name], names.get(answer.name, names[last]))


def _sum(writer: "TfliteWriter", layer: Layer, source: int, scale: float, *, relu: bool) -> int:
    """Add what ``layer`` does before its residual and its pooling, and return its output."""
    activation = int(relu)
    if layer.kind == "pass":
        return source
    if layer.kind == "average":
        return writer.operator("AVERAGE_POOL_2D", "Pool2DOptions", [source], layer.conv_shape, scale,
                               **_window(layer.kernel, layer.strides, any(layer.pads)),
                               FusedActivationFunction=activation)
    if layer.weights is None or layer.groups not in (1, layer.in_shape[0]):
        raise InputError(f"Network for a .tflite file must have no grouped convolution, such as {layer.name}")
    depthwise = layer.groups > 1
    weights = layer.weights.transpose(1, 2, 3, 0) if depthwise else layer.weights.transpose(0, 2, 3, 1)
    scales = np.full(layer.weights.shape[0], _WEIGHT_SCALE, np.float32)
    constants = [writer.constant(f"{layer.name} weights", weights.astype(np.int8), scales, 3 if depthwise else 0),
                 writer.constant(f"{layer.name} bias", layer.bias.astype(np.int32), scales * np.float32(scale), 0)]
    if depthwise:
        return writer.operator(
            "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", [source, *constants], layer.conv_shape, scale,
            Padding=int(not any(layer.pads)), StrideH=layer.strides[0], StrideW=layer.strides[1], DepthMultiplier=1,
            DilationHFactor=1, DilationWFactor=1, FusedActivationFunction=activation)
    return writer.operator(
        "CONV_2D", "Conv2DOptions", [source, *constants], layer.conv_shape, scale, Padding=int(not any(layer.pads)),
        StrideH=layer.strides[0], StrideW=layer.strides[1], DilationHFactor=layer.dilations[0],
        DilationWFactor=layer.dilations[1], FusedActivationFunction=activation)


def _window(kernel: Pair, strides: Pair, padded: bool) -> dict[str, int]:
    return {"Padding": int(not padded), "FilterHeight": kernel[0], "FilterWidth": kernel[1], "StrideH": strides[0],
            "StrideW": strides[1]}


class TfliteWriter:
    """Collects tensors and operators, and packs them; tensors are known by number, and are NHWC there."""

    def __init__(self) -> None:
        try:
            self._schema: Any = importlib.import_module("tflite")
            self._builder: Any = importlib.import_module("flatbuffers").Builder(1 << 20)
        except ModuleNotFoundError as error:
            raise InputError(f"Package {error.name!r} is needed to write .tflite files, and is not installed: "
                             f"pip install 'tilewright[peers]'") from error
        self._buffers = [self._table("Buffer")]
        self._tensors: list[int] = []
        self._shapes: list[tuple[int, ...]] = []
        self._scales: list[float] = []
        self._codes: list[str] = []
        self._operators: list[int] = []

    def activation(self, name: str, shape: Sequence[int], scale: float) -> int:
        """Add an int8 tensor of ``shape`` (channels, height, width) and return its number."""
        channels, height, width = shape
        return self._tensor(name, (1, height, width, channels), "INT8", np.array([scale], np.float32), 0, buffer=0)

    def constant(self, name: str, values: np.ndarray, scales: np.ndarray, axis: int) -> int:
        """Add a constant of int8 or int32, quantised along ``axis``, and return its number."""
        data = self._builder.CreateByteVector(values.tobytes())
        self._buffers.append(self._table("Buffer", Data=data))
        return self._tensor(name, values.shape, values.dtype.name.upper(), scales, axis, len(self._buffers) - 1)

    def reshaped(self, source: int, shape: Sequence[int]) -> int:
        """Return the tensor ``source`` in ``shape``, reshaped if it has another."""
        channels, height, width = shape
        wanted = (1, height, width, channels)
        if self._shapes[source] == wanted:
            return source
        form = self.constant(f"shape {len(self._tensors)}", np.array(wanted, np.int32), np.ones(0, np.float32), 0)
        return self.operator("RESHAPE", "ReshapeOptions", [source, form], shape, self._scales[source],
                             NewShape=self._builder.CreateNumpyVector(np.array(wanted, np.int32)))

    def operator(self, code: str, options: str, inputs: Sequence[int], shape: Sequence[int], scale: float,
                 **settings: int) -> int:
        """Add an operator and the tensor that it writes, and return the number of that."""
        output = self.activation(f"{code} {len(self._tensors)}", shape, scale)
        if code not in self._codes:
            self._codes.append(code)
        packed = self._table(options, **settings)
        read, written = (self._builder.CreateNumpyVector(np.array(each, np.int32)) for each in (inputs, [output]))
        self._operators.append(self._table(
            "Operator", OpcodeIndex=self._codes.index(code), Inputs=read, Outputs=written,
            BuiltinOptionsType=getattr(self._schema.BuiltinOptions, options), BuiltinOptions=packed))
        return output

    def content(self, source: int, answer: int) -> bytes:
        """Return the file, of a network from the tensor ``source`` to the tensor ``answer``."""
        ends = [self._builder.CreateNumpyVector(np.array([each], np.int32)) for each in (source, answer)]
        graph = self._table("SubGraph", Tensors=self._tables(self._tensors), Inputs=ends[0], Outputs=ends[1],
                            Operators=self._tables(self._operators))
        known = [getattr(self._schema.BuiltinOperator, code) for code in self._codes]
        codes = [self._table("OperatorCode", DeprecatedBuiltinCode=each, BuiltinCode=each, Version=1) for each in known]
        model = self._table("Model", Version=_VERSION, OperatorCodes=self._tables(codes),
                            Subgraphs=self._tables([graph]), Buffers=self._tables(self._buffers))
        self._builder.Finish(model, file_identifier=b"TFL3")
        return bytes(self._builder.Output())

    def _tensor(self, name: str, shape: tuple[int, ...], dtype: str, scales: np.ndarray, axis: int,
                buffer: int) -> int:
        quantised: dict[str, int] = {}
        if scales.size:
            zeros = self._builder.CreateNumpyVector(np.zeros(scales.size, np.int64))
            quantised = {"Quantization": self._table(
                "QuantizationParameters", Scale=self._builder.CreateNumpyVector(scales), ZeroPoint=zeros,
                QuantizedDimension=axis)}
        extents = self._builder.CreateNumpyVector(np.array(shape, np.int32))
        title = self._builder.CreateString(name)
        self._tensors.append(self._table("Tensor", Shape=extents, Type=getattr(self._schema.TensorType, dtype),
                                         Buffer=buffer, Name=title, **quantised))
        self._shapes.append(shape)
        self._scales.append(float(scales[0]) if scales.size else 1.0)
        return len(self._tensors) - 1

    def _table(self, kind: str, **fields: int) -> int:
        """Write a table of the schema and return where it is."""
        getattr(self._schema, f"{kind}Start")(self._builder)
        for name, value in fields.items():
            getattr(self._schema, f"{kind}Add{name}")(self._builder, value)
        return int(getattr(self._schema, f"{kind}End")(self._builder))

    def _tables(self, places: Sequence[int]) -> int:
        self._builder.StartVector(4, len(places), 4)
        for place in reversed(places):
            self._builder.PrependUOffsetTRelative(place)
        return int(self._builder.EndVector())
