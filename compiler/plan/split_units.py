"""Cut layers before units that the machine leaves out: the host core computes the missing part.

Behind the requantisation of a layer come addition, value table and max pooling. Those up to the first that the machine
lacks stay with the layer, whose result is a tensor of its own. From there on each is an operator of the host core
(addition: a table of all pairs of int8), or, if the machine has it, a layer that copies. The values are the same.
On a machine without float32 scales all are whole numbers first (`compiler.scales`).
A layer of whole sums is one operator, ConvInteger. Weights beyond int8 are added up for as many pixels at a time as the
array holds sums: a max pooling whose windows are not whole among them is a layer of its own. A layer that is
requantised in integers is refused.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError, raise_all
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Layer, Network, TensorInfo
from tilewright.compiler.network.places import copy_layer
from tilewright.compiler.network.reference import residual_table
from tilewright.compiler.scales.integers_alone import with_integers_alone
from tilewright.isa.machine import LIMITS, Machine

__all__ = ["split_units", "without_whole_sums"]

_UNITS = {"residual": "residual_adder", "table": "value_tables", "pool": "max_pooling"}
"""Unit of each step behind the requantisation, in the order in which they come."""


def split_units(network: Network, machine: Machine) -> Network:
    """Return ``network`` with every layer that needs a unit which ``machine`` leaves out in parts that do not.

    Raises
    ------
    UnsupportedNodeError
        For layers that are requantised in integers, if the machine does not do that, and for those whose float32 scale
        has no equal in whole numbers, if it does nothing else.
    """
    if not machine.float_requantise:
        network = with_integers_alone(network)
    if not machine.integer_requantise:
        raise_all([_not_in_integers(layer) for layer in network.layers
                   if isinstance(layer, Layer) and layer.requantisation.integers is not None])
    missing = [step for step, unit in _UNITS.items() if not getattr(machine, unit)]
    return _split(network, _UnitSplit(network, missing, whole_sums=machine.whole_sums, sums=machine.tiles))


def _not_in_integers(layer: Layer) -> UnsupportedNodeError:
    return UnsupportedNodeError(layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, layer.kind,
                                "its sums are multiplied, added to and shifted in whole numbers, which no float32 "
                                "scale equals, and the machine has no integer requantisation",
                                "choose one that has it, as with --machine base,integer_requantise=true")


def without_whole_sums(network: Network) -> Network:
    """Return ``network`` with operators of the host core for every layer of whole sums."""
    return _split(network, _UnitSplit(network, [], whole_sums=False, sums=LIMITS["tiles"][1]))


def _split(network: Network, split: "_UnitSplit") -> Network:
    layers = [part for layer in network.layers for part in split.parts(layer)]
    return replace(network, layers=tuple(layers), tensors=split.tensors, constants=split.constants)


class _UnitSplit:
    """Parts of layers, and the tensors and constants that they need besides those of the network."""

    def __init__(self, network: Network, missing: list[str], *, whole_sums: bool = True, sums: int) -> None:
        self.missing, self.whole_sums, self.sums = missing, whole_sums, sums
        self.tensors = dict(network.tensors)
        self.constants = dict(network.constants)

    def parts(self, layer: AnyLayer) -> list[AnyLayer]:
        """Return the layers that together replace ``layer``."""
        if isinstance(layer, CoreLayer):
            return [layer]
        if layer.whole:
            return [layer] if self.whole_sums else self._whole(layer)
        order = ("table", "residual", "pool") if layer.table_first else tuple(_UNITS)
        steps = [step for step in order if getattr(layer, step) is not None]
        apart = self.missing if _has_whole_windows(layer, self.sums) else [*self.missing, "pool"]
        if not any(step in apart for step in steps):
            return [layer]
        first = next(index for index, step in enumerate(steps) if step in apart)
        behind: dict[str, Any] = dict.fromkeys(steps[first:]) | {"table_first": False}
        parts: list[AnyLayer] = []
        source = layer.input
        if not _is_copy(layer, steps[:first]) or not self._is_image(source):
            source = self._tensor(layer, "sum", layer.conv_shape)
            parts.append(replace(layer, output=source, also=(), out_shape=layer.conv_shape, **behind))
        for step in steps[first:]:
            last = step == steps[-1]
            shape = layer.out_shape if step == "pool" else layer.conv_shape
            ends = last and not layer.also and self._is_image(layer.output)
            target = layer.output if ends else self._tensor(layer, step, shape)
            parts += self._step(layer, step, source, target)
            source = target
        if source != layer.output:
            copied = copy_layer(f"{layer.name}:copy", layer.onnx_nodes, self.tensors[source], layer.output)
            parts.append(replace(copied, also=layer.also, exact=layer.exact))
        return parts

    def _whole(self, layer: Layer) -> list[AnyLayer]:
        """Return the operators that write the sums of a layer: products, bias, and the order in which they lie."""
        place = self.tensors[layer.output].place
        assert place is not None
        assert layer.weights is not None
        sums, made, source = self.tensors[place.parent], list[AnyLayer](), layer.input
        if not self._is_image(source):
            info = replace(self.tensors[source], shape=layer.in_shape)
            source = self._tensor(layer, "in", layer.in_shape)
            made.append(copy_layer(f"{layer.name}:in", layer.onnx_nodes, info, source))
        bias = layer.bias + layer.pad_value * layer.weights.sum(axis=(1, 2, 3), dtype=np.int32)
        attrs = {"strides": list(layer.strides), "dilations": list(layer.dilations), "pads": list(layer.pads),
                 "group": layer.groups}
        dims = (1, *layer.conv_shape)
        pixels = (1, *dims[2:], dims[1])
        zero = np.array(layer.pad_value, np.int8)
        steps: list[tuple[str, str, tuple[str, ...], dict[str, Any], tuple[int, ...]]] = [
            ("sums", "Add", self._constants(layer, bias=bias.reshape(-1, 1, 1)), {}, dims)]
        products = []
        for number, weights in enumerate(layer.weight_parts):
            what = f"products {number}" if number else "products"
            constants = self._constants(layer, **{f"weights {number}" if number else "weights": weights, "zero": zero})
            products.append(self._sums(layer, what, dims))
            made.append(self._core(layer, what, "ConvInteger", (source, *constants), products[-1], attrs,
                                   macs=0 if number else layer.macs))
        steps = [*((f"both {number}", "Add", (each,), {}, dims) for number, each in enumerate(products[1:])), *steps]
        source = products[0]
        if sums.array_shape not in (dims, dims[1:]):
            steps += [("pixels", "Transpose", (), {"perm": [0, 2, 3, 1]}, pixels),
                      ("shaped", "Reshape", self._constants(layer, shape=np.array(sums.array_shape)), {},
                       sums.array_shape)]
        for index, (what, op, others, given, shape) in enumerate(steps):
            name = sums.name if index == len(steps) - 1 else self._sums(layer, what, shape)
            made.append(self._core(layer, what, op, (source, *others), name, given))
            source = name
        return made

    def _sums(self, layer: Layer, what: str, dims: tuple[int, ...]) -> str:
        """Return the name of a new tensor of int32."""
        name = self._tensor(layer, what, (math.prod(dims), 1, 1))
        whole = dims[1:] if len(dims) == 4 else (math.prod(dims), 1, 1)
        self.tensors[name] = replace(self.tensors[name], shape=whole, dtype="int32", dims=dims)
        return name

    def _core(self, layer: Layer, what: str, op: str, inputs: tuple[str, ...], output: str, attrs: dict[str, Any],
              macs: int = 0) -> CoreLayer:
        return CoreLayer(name=f"{layer.name}:{what}", onnx_nodes=layer.onnx_nodes, op=op, inputs=inputs, output=output,
                         attrs=attrs, reason="the machine leaves out whole sums", macs=macs)

    def _constants(self, layer: Layer, **values: np.ndarray) -> tuple[str, ...]:
        """Return the names of new constants that operators of ``layer`` read."""
        names = {f"{layer.name}:{what}": value for what, value in values.items()}
        self.constants |= names
        return tuple(names)

    def _step(self, layer: Layer, step: str, source: str, target: str) -> list[AnyLayer]:
        """Return the layers of one step: on the host core, or a copy with the unit that the machine has."""
        name = f"{layer.name}:{step}"
        if step not in self.missing:
            copied = copy_layer(name, layer.onnx_nodes, self.tensors[source], target)
            own: dict[str, Any] = {step: getattr(layer, step)}
            return [replace(copied, out_shape=self.tensors[target].shape, exact=layer.exact, **own)]
        reason = f"the machine leaves out {_UNITS[step].replace('_', ' ')}"
        if step == "residual":
            assert layer.residual is not None
            before, other = self._image(layer, layer.residual.tensor)
            table = f"{name}:table"
            self.constants[table] = np.ascontiguousarray(residual_table(layer.residual))
            return [*before, CoreLayer(name=name, onnx_nodes=layer.onnx_nodes, op="PairLookUp",
                                       inputs=(source, other, table), output=target, attrs={}, reason=reason,
                                       exact=layer.exact)]
        if step == "table":
            assert layer.table is not None
            table = f"{name}:table"
            self.constants[table] = layer.table
            return [CoreLayer(name=name, onnx_nodes=layer.onnx_nodes, op="LookUp", inputs=(source, table),
                              output=target, attrs={}, reason=reason, exact=layer.exact)]
        assert layer.pool is not None
        pool = layer.pool
        attrs = {"kernel_shape": list(pool.kernel), "strides": list(pool.strides), "pads": list(pool.pads)}
        return [CoreLayer(name=name, onnx_nodes=layer.onnx_nodes, op="MaxPool", inputs=(source,), output=target,
                          attrs=attrs, reason=reason, exact=layer.exact)]

    def _image(self, layer: Layer, name: str) -> tuple[list[AnyLayer], str]:
        """Return the tensor ``name`` as an image of four dimensions, and the copy that makes it one if it is none."""
        if self._is_image(name):
            return [], name
        copied = self._tensor(layer, "image", layer.conv_shape)
        info = replace(self.tensors[name], shape=layer.conv_shape)
        return [copy_layer(f"{layer.name}:image", layer.onnx_nodes, info, copied)], copied

    def _is_image(self, name: str) -> bool:
        """Tell whether kernels of the host core see a tensor as (1, channels, height, width)."""
        info = self.tensors[name]
        return info.dims is None or info.dims == (1, *info.shape)

    def _tensor(self, layer: Layer, what: str, shape: tuple[int, int, int]) -> str:
        """Return the name of a new tensor between two parts of ``layer``."""
        name = f"{layer.output}:{what}"
        self.tensors[name] = TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=0)
        return name


def _has_whole_windows(layer: Layer, sums: int) -> bool:
    """Tell whether each window of a layer's max pooling lies among ``sums`` pixels that are added up at a time."""
    if layer.pool is None or layer.weights is None or layer.weights.dtype == np.int8:
        return True
    pool = layer.pool
    return pool.kernel == pool.strides == (2, 2) and not any(pool.pads) and sums >= math.prod(pool.kernel)


def _is_copy(layer: Layer, steps: list[str]) -> bool:
    """Tell whether a layer with no more than these of its ``steps`` only copies its input."""
    how = layer.requantisation
    return (layer.kind == "pass" and not steps and layer.factor is None and not any(layer.pads)
            and not layer.bias.any() and bool((how.scale == 1).all())
            and (how.zero_point, how.low, how.high) == (0, -128, 127))
