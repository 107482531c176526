"""Compare three computations layer by layer: ONNX Runtime's, the integer reference's and an engine's.

The engine must equal the integer reference in every bit. The reference must equal ONNX Runtime, but where that computes
in float: such a layer may be one level off, float tensors as far as `runtime.oracle.comparison` allows. What follows
a layer that is off is judged by itself: the reference is given ONNX Runtime's inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.network.image_forms import images_of
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Network
from tilewright.compiler.network.memory_map import words_of
from tilewright.compiler.network.operands import from_memory, tensor_operand, to_memory
from tilewright.compiler.network.reference import run_core_layer, run_layer
from tilewright.runtime.execution.job import Job
from tilewright.runtime.execution.verdict import Judged, TensorVerdict, not_compared
from tilewright.runtime.oracle.comparison import IN_FLOAT, NOT_SHOWN, FirstDifference, float_differences, judge
from tilewright.runtime.oracle.conversion import as_int8, is_raw

__all__ = ["Divergence", "Row", "SideBySide", "Word", "element_address", "side_by_side"]

Word = Literal["equal", "alone", "near", "hidden", "differs"]
"""A verdict in a word: ``equal`` in every element; ``alone`` if given the other's inputs; ``near``: off as far as is
declared; ``hidden``: not compared, as ONNX Runtime does not show the tensor, or not what it is computed of;
``differs``."""

_UNKNOWN_INPUTS = "an earlier layer is off, and ONNX Runtime does not show what this one is computed of"

_Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One layer's comparison.

    Attributes
    ----------
    index : int
    name, kind, tensor : str
        ``kind`` is the instruction that computes it, or ``core``; ``tensor`` what it writes.
    shape : tuple of int
    exact : bool
        Whether ONNX Runtime's result must be met exactly.
    verdict : TensorVerdict
        Of the integer reference against ONNX Runtime.
    engine : {"equal", "differs"}
        The engine against the integer reference.
    """

    index: int
    name: str
    kind: str
    tensor: str
    shape: tuple[int, ...]
    exact: bool
    verdict: TensorVerdict
    engine: Literal["equal", "differs"]

    @property
    def onnx_runtime(self) -> Word:
        """The verdict in a word."""
        if self.verdict.kind == "declared":
            return "alone" if self.verdict.alone else "near"
        return "hidden" if self.verdict.kind == "not compared" else self.verdict.kind

    @property
    def off(self) -> int:
        """Elements in which reference and ONNX Runtime differ."""
        return self.verdict.off

    def to_json(self) -> dict[str, Any]:
        """Return the entry of a comparison's JSON."""
        return {"index": self.index, "name": self.name, "by": self.kind, "tensor": self.tensor,
                "shape": list(self.shape), "exact": self.exact, "onnx_runtime": self.onnx_runtime,
                "engine": self.engine, **self.verdict.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence(FirstDifference):
    """The first layer that differs where it must not, and its first such element.

    Attributes
    ----------
    between : tuple of (str, str)
        Which two computations part; ``count`` elements of the tensor differ between them.
    onnx_runtime, reference, engine : int or float or None
        The element's values; None where ONNX Runtime does not show the tensor.
    address : int
        Of the element in main memory.
    """

    between: tuple[str, str]
    onnx_runtime: int | float | None
    reference: int | float
    engine: int | float
    address: int

    def __str__(self) -> str:
        shown = "not shown" if self.onnx_runtime is None else self.onnx_runtime
        first, second = self.between
        return self.sentence(
            f", {first} from {second}", f", address {self.address:#x}, is {shown} in ONNX Runtime, {self.reference} "
            f"in the integer reference, {self.engine} in the engine")


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The layers up to the first that differs, that included; how many there are; and the outputs of the model."""

    rows: tuple[Row, ...]
    divergence: Divergence | None
    layers: int
    outputs: tuple[Judged, ...] = ()

    def with_outputs(self, outputs: Sequence[Judged]) -> "SideBySide":
        """Return it with the model's outputs, which stand for layers whose tensor ONNX Runtime does not show."""
        made = {each.tensor: each.verdict for each in outputs}
        rows = tuple(replace(row, verdict=made[row.tensor])
                     if row.verdict.kind == "not compared" and row.tensor in made else row for row in self.rows)
        return replace(self, rows=rows, outputs=tuple(outputs))


def side_by_side(network: Network, job: Job, onnx_runtime: _Arrays, reference: _Arrays, engine: _Arrays) -> SideBySide:
    """Compare three computations of a network, layer by layer.

    Parameters
    ----------
    network : Network
    job : Job
        It compiled; tells addresses.
    onnx_runtime : mapping of str to ndarray
        As `runtime.oracle.onnx_runtime` returns them.
    reference, engine : mapping of str to ndarray
        All tensors, as `compiler.network.reference.run_network` and `runtime.execution.engines.execute` return them.
    """
    theirs = _theirs(network, onnx_runtime, reference)
    rows: list[Row] = []
    judges = _Judge(network, job, theirs, reference)
    for index, layer in enumerate(network.layers):
        tensor = judges.tensor(layer)
        verdict, wrong = judges.verdict(layer)
        spoilt = next((name for name in layer.writes if _differing(engine[name], reference[name]).any()), None)
        rows.append(Row(
            index=index, name=layer.name, kind=job.layers[index].algorithm, tensor=tensor,
            shape=reference[tensor].shape, exact=judges.must_equal(layer), verdict=verdict,
            engine="equal" if spoilt is None else "differs"))
        if spoilt is not None:
            # First of all, as one fault of the engine tells more than what follows from it.
            tensor, wrong, pair = spoilt, _differing(engine[spoilt], reference[spoilt]), ("engine", "integer reference")
        elif verdict.kind == "differs":
            pair = ("integer reference", "ONNX Runtime")
        else:
            continue
        places = np.argwhere(wrong)
        at = tuple(map(int, places[0]))
        return SideBySide(tuple(rows), Divergence(
            layer=index, name=layer.name, tensor=tensor, between=pair, index=at,
            onnx_runtime=theirs[tensor][at].item() if tensor in theirs else None,
            reference=reference[tensor][at].item(), engine=engine[tensor][at].item(), count=len(places),
            address=element_address(job, tensor, at)), len(network.layers))
    return SideBySide(tuple(rows), None, len(network.layers))


def element_address(job: Job, tensor: str, index: tuple[int, ...]) -> int:
    """Return where in main memory an element of a tensor lies; 0 for one of a constant channel, which does not."""
    info, address = job.tensors[tensor]
    if info.absent is not None:
        if index[0] not in info.absent.kept:
            return 0
        index = info.absent.kept.index(index[0]), *index[1:]
    operand = tensor_operand(info, address)
    place = np.unravel_index(np.ravel_multi_index(index, info.array_shape), operand.dims)
    steps = sum(int(at) * stride for at, stride in zip(place, operand.strides, strict=True))
    return address + steps * np.dtype(info.dtype).itemsize


def _theirs(network: Network, onnx_runtime: _Arrays, reference: _Arrays) -> dict[str, np.ndarray]:
    """Return ONNX Runtime's tensors as we have them; what it shows only as part of a larger tensor is cut from that."""
    shown = {**onnx_runtime, **images_of(onnx_runtime, network.tensors)}
    theirs = {name: _as_ours(array, reference[name]) for name, array in shown.items() if name in reference}
    # An output of the model may be another tensor under a new shape.
    theirs |= {info.name: _as_ours(onnx_runtime[str(info.onnx_name)], reference[info.name]) for info in network.outputs
               if info.name not in theirs and is_raw(info)}
    for name, info in network.tensors.items():
        if info.place is not None and info.place.parent in theirs and name not in theirs and (
                words_of(name, network.tensors) == name):
            whole = to_memory(theirs[info.place.parent], network.tensors[info.place.parent])
            theirs[name] = from_memory(whole[info.place.offset:], info)
    return theirs


def _as_ours(array: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Return ONNX Runtime's tensor with type and shape of the reference's."""
    array = array.reshape(ours.shape)
    return as_int8(array) if ours.dtype == np.int8 and array.dtype == np.uint8 else array


def _differing(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return where two arrays differ; not-a-number equals itself."""
    if left.dtype == np.float32:
        return (left != right) & ~(np.isnan(left) & np.isnan(right))
    return np.asarray(left != right)


def _levels(layer: AnyLayer) -> int:
    """Return by how much a layer that is not exact may be off: a level, or what its table makes of one."""
    if isinstance(layer, CoreLayer) or layer.table is None:
        return 1
    return max(1, int(np.abs(np.diff(layer.table.astype(np.int64))).max()))


class _Judge:
    """Holds the integer reference to ONNX Runtime, in the order of the layers."""

    def __init__(self, network: Network, job: Job, theirs: _Arrays, reference: _Arrays) -> None:
        self._network, self._theirs, self._reference = network, theirs, reference
        self._absent = {name: info.absent for name, (info, _) in job.tensors.items() if info.absent is not None}
        self._rough: set[str] = set()   # float tensors that need not be ONNX Runtime's to the last bit
        self._parted = False            # whether a layer before this one was off

    def tensor(self, layer: AnyLayer) -> str:
        """Return which of the tensors that a layer writes is compared: one that ONNX Runtime shows, if there is one."""
        written = [words_of(name, self._network.tensors) for name in layer.writes]
        return next((name for name in written if name in self._theirs), written[0])

    def must_equal(self, layer: AnyLayer) -> bool:
        """Tell whether ONNX Runtime's result must be met exactly."""
        if not layer.exact or self._rough & set(layer.reads):
            return False
        return not isinstance(layer, CoreLayer) or CORE_KERNELS[layer.op].exactness == "exact"

    def verdict(self, layer: AnyLayer) -> tuple[TensorVerdict, np.ndarray]:
        """Judge the next layer; return the verdict and where its tensor differs from ONNX Runtime's."""
        tensor = self.tensor(layer)
        exact, ours = self.must_equal(layer), self._reference[tensor]
        if not exact and ours.dtype == np.float32:
            self._rough |= {words_of(name, self._network.tensors) for name in layer.writes}
        if tensor not in self._theirs:
            self._parted |= not exact
            return not_compared(NOT_SHOWN), np.zeros(ours.shape, bool)
        found, differs = judge(ours, self._theirs[tensor], loose=True)
        if found.kind == "equal":
            return found, differs
        found = replace(found, why=IN_FLOAT)
        if self._parted:
            alone = self._alone(layer)
            if alone is None:  # what it follows from cannot be told from what it does itself
                far = self._beyond(ours, self._theirs[tensor], False, _levels(layer))
                return (not_compared(_UNKNOWN_INPUTS) if far.any() else found), differs
            ours = alone
        wrong = self._beyond(ours, self._theirs[tensor], exact, _levels(layer))
        alone_equal = self._parted and not _differing(ours, self._theirs[tensor]).any()
        self._parted = True
        if wrong.any():
            of_wrong = judge(ours, self._theirs[tensor])[0]
            return replace(of_wrong, kind="differs", off=int(np.count_nonzero(wrong)), why=""), wrong
        return replace(found, alone=alone_equal), differs

    def _beyond(self, ours: np.ndarray, theirs: np.ndarray, exact: bool, levels: int) -> np.ndarray:
        """Return where two tensors differ by more than is allowed: integers, where not exact, by ``levels``."""
        if exact:
            return _differing(ours, theirs)
        if ours.dtype == np.float32:
            return float_differences(ours, theirs)[0]
        return np.abs(ours.astype(np.int64) - theirs) > levels

    def _alone(self, layer: AnyLayer) -> np.ndarray | None:
        """Return what the reference makes of ONNX Runtime's own inputs; None if that does not show them."""
        values = self._theirs
        of_layer = None if isinstance(layer, CoreLayer) else layer.factor
        images = of_layer.images if of_layer else ()
        if not all(name in values or name in self._network.constants or name in images for name in layer.reads):
            return None
        if of_layer and of_layer.tensor in images:
            return None
        if isinstance(layer, CoreLayer):
            return run_core_layer(layer, self._network, values)
        other = self._stored(layer.residual.tensor).reshape(layer.conv_shape) if layer.residual else None
        factor = self._stored(layer.factor.tensor) if layer.factor else None
        made = run_layer(layer, self._stored(layer.input).reshape(layer.in_shape), other, factor)
        if (absent := self._absent.get(layer.output)) is not None:
            return None if absent.values is None else absent.filled_in(made)
        return made.reshape(self._network.tensors[layer.output].array_shape)

    def _stored(self, name: str) -> np.ndarray:
        """Return ONNX Runtime's values of the channels that a tensor has in memory."""
        absent = self._absent.get(name)
        return self._theirs[name] if absent is None else self._theirs[name][list(absent.kept)]
