"""Networks with layers of the host core, built by hand: between convolutions, alone, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.support.stacks import Stack
from tilewright.compiler.network.layers import CoreLayer, Network, Place, TensorInfo


@dataclass
class CoreStack(Stack):
    """A stack that can have layers of the host core too."""

    constants: dict[str, np.ndarray] = field(default_factory=dict)
    handed_out: list[str] = field(default_factory=list)
    handed_in: list[str] = field(default_factory=list)

    def tensor(self, name: str, dims: tuple[int, ...], dtype: str = "float32") -> TensorInfo:
        """Describe a tensor of the host core."""
        shape = dims[1:] if len(dims) == 4 and dims[0] == 1 else (int(np.prod(dims)), 1, 1)
        self.tensors[name] = TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=0, dtype=dtype,
                                        dims=dims)
        return self.tensors[name]

    def core(self, op: str, inputs: tuple[str, ...], dims: tuple[int, ...], dtype: str = "float32",
             attrs: Mapping[str, Any] | None = None) -> str:
        """Append a layer of the host core and return its output."""
        name = f"{op.lower()}{len(self.layers)}"
        self.tensor(name, dims, dtype)
        self.layers.append(CoreLayer(name=name, onnx_nodes=(name,), op=op, inputs=inputs, output=name,
                                     attrs=attrs or {}, reason="a test wants it there"))
        self.last = name
        return name

    def network(self, name: str) -> Network:
        """Return the network; its border is as the tensors are."""
        ins, outs = self.handed_in or ["input"], self.handed_out or [self.last]

        def border(names: list[str]) -> tuple[TensorInfo, ...]:
            return tuple(replace(info, onnx_name=info.name, onnx_dtype=info.dtype,
                                 onnx_shape=info.dims or (1, *info.shape)) for info in map(self.tensors.get, names))

        return Network(name=name, layers=tuple(self.layers), inputs=border(ins), outputs=border(outs),
                       tensors=self.tensors, constants=self.constants)


def between_convolutions() -> Network:
    """Return convolution, an int8 operator on the host core, convolution; both values of the middle are handed out."""
    stack = CoreStack((3, 10, 9), seed=1)
    first = stack.conv(5, 3, pad=1)
    second = stack.core("Neg", (first,), (1, 5, 10, 9), "int8")
    third = stack.core("Abs", (second,), (1, 5, 10, 9), "int8")
    last = stack.conv(7, 3)
    stack.handed_out = [third, last]
    return stack.network("between convolutions")


def floats_alone() -> Network:
    """Return operators on floats: no layer of the datapath, constants, broadcasting, two inputs."""
    stack = CoreStack((1, 1, 1), seed=2)
    del stack.tensors["input"]
    stack.tensor("x", (1, 6, 5, 4))
    stack.tensor("y", (2, 3))
    stack.handed_in = ["x", "y"]
    stack.constants["scale"] = stack.rng.normal(size=(6, 1, 1)).astype(np.float32)
    stack.constants["half"] = np.float32(0.5).reshape(())
    scaled = stack.core("Mul", ("x", "scale"), (1, 6, 5, 4))
    shifted = stack.core("Add", (scaled, "half"), (1, 6, 5, 4))
    other = stack.core("Div", ("half", "y"), (2, 3))
    stack.handed_out = [shifted, other]
    return stack.network("floats alone")


def core_first_and_last() -> Network:
    """Return a network that begins and ends on the host core; weights of both convolutions can come in early."""
    stack = CoreStack((4, 8, 8), seed=3)
    negated = stack.core("Neg", ("input",), (1, 4, 8, 8), "int8")
    first = stack.conv(8, 3, pad=1)
    second = stack.conv(8, 3, pad=1, residual=first)
    last = stack.core("Abs", (second,), (1, 8, 8, 8), "int8")
    stack.handed_out = [last, negated, first]
    return stack.network("core first and last")


def parts_of_a_tensor() -> Network:
    """Return a network in which the host core writes a part of a tensor beside a convolution's, and reads one."""
    stack = CoreStack((4, 8, 7), seed=5)
    first = stack.conv(4, 3, pad=1)
    second = stack.core("Neg", ("input",), (1, 4, 8, 7), "int8")
    stack.tensors["whole"] = TensorInfo(name="whole", shape=(8, 8, 7), scale=np.float32(1), zero_point=0)
    for offset, part in ((0, first), (4, second)):
        place = Place(parent="whole", offset=offset, row_step=56, pixel_step=8)
        stack.tensors[part] = replace(stack.tensors[part], place=place)
    last = stack.conv(5, 3, source="whole")
    third = stack.core("Abs", (first,), (1, 4, 8, 7), "int8")
    stack.handed_out = [last, third]
    return stack.network("parts of a tensor")


def inputs_of(network: Network, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random inputs."""
    rng = np.random.default_rng(seed)
    found = {}
    for info in network.inputs:
        if info.dtype == "float32":
            found[info.name] = rng.normal(size=info.array_shape).astype(np.float32)
        elif info.dtype == "bool":
            found[info.name] = rng.integers(0, 2, info.array_shape).astype(bool)
        else:
            limits = np.iinfo(info.dtype)
            found[info.name] = rng.integers(limits.min, limits.max, info.array_shape, info.dtype, endpoint=True)
    return found


NETWORKS = {"between convolutions": between_convolutions, "floats alone": floats_alone,
            "core first and last": core_first_and_last, "parts of a tensor": parts_of_a_tensor}
