"""A node of an integer network of PULP's tools with what its inputs are, and checked access to its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.pulp.byte_model import ByteModel
from tilewright.compiler.pulp.level_values import ByteLevels, ConstantProduct, LevelTerms, PendingSums, RealTensor

__all__ = ["PulpNode", "Value"]

Value = ByteLevels | PendingSums | RealTensor

_LARGEST = 2**52


@dataclass(frozen=True, slots=True)
class PulpNode:
    """A node; ``given`` are its inputs in order, None where one is absent.

    ``target`` is the name that levels get in the model that is ``made``: the node's output, unless this is one of the
    network's.
    """

    proto: onnx.NodeProto
    given: Sequence[Value | np.ndarray | None]
    made: ByteModel
    target: str

    @property
    def label(self) -> str:
        """The node's name, or of what it computes."""
        return self.proto.name or self.proto.output[0]

    def refusal(self, reason: str, way_out: str = "cut the network before this node") -> UnsupportedNodeError:
        """Return the error for what is not compiled."""
        return UnsupportedNodeError(self.label, self.proto.op_type, reason, way_out)

    def attribute(self, name: str, default: object = None) -> object:
        """Return the value of an attribute, an array for a tensor."""
        found = next((each for each in self.proto.attribute if each.name == name), None)
        if found is None:
            return default
        value = helper.get_attribute_value(found)
        try:
            return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
        except (ValueError, TypeError) as error:
            raise BadModelError(f"Attribute {name!r} of node {self.label!r} must be a whole tensor") from error

    def number(self, name: str, default: int | None = None) -> int:
        """Return the one whole number that an attribute holds.

        Raises
        ------
        BadModelError
            If it holds something else, or is missing without a default.
        """
        values = np.asarray(self.attribute(name, default))
        if values.size != 1 or values.dtype.kind not in "iufb":
            raise BadModelError(f"Attribute {name!r} of node {self.label!r} ({self.proto.op_type}) must be one number")
        return int(self.whole(values, f"attribute {name!r}").reshape(-1)[0])

    def whole(self, values: np.ndarray, what: str) -> np.ndarray:
        """Return constants as int64.

        Raises
        ------
        UnsupportedNodeError
            If they are no whole numbers.
        """
        if values.dtype.kind not in "iufb" or not values.size or not np.isfinite(values.astype(np.float64)).all() \
                or (values != np.rint(values)).any() or np.abs(values.astype(np.float64)).max() > _LARGEST:
            raise self.refusal(f"its {what} is not of whole numbers below 2**52", "export the network after its "
                               "conversion to integers, or give the float network with --calibrate")
        return values.astype(np.int64)

    def constant(self, position: int, what: str) -> np.ndarray:
        """Return an input that must be constant, int64."""
        given = self.given[position] if position < len(self.given) else None
        if not isinstance(given, np.ndarray):
            raise self.refusal(f"its {what} is missing or computed", "export the network with a constant")
        return self.whole(given, what)

    def levels(self, position: int = 0) -> ByteLevels:
        """Return an input that must be of 8 bits."""
        given = self.given[position] if position < len(self.given) else None
        if not isinstance(given, ByteLevels):
            raise self.refusal("its input is not of 8 bits", "requantise it before this node")
        return given

    def pending(self, position: int = 0) -> PendingSums:
        """Return an input as sums; levels are such, too."""
        given = self.given[position] if position < len(self.given) else None
        if isinstance(given, ByteLevels):
            return PendingSums(LevelTerms(((given, 1),)), (1,), (0,))
        if not isinstance(given, PendingSums):
            raise self.refusal("its input is missing or a constant", "export the network again")
        return given

    def per_channel(self, pending: PendingSums, values: np.ndarray, what: str) -> np.ndarray:
        """Return constants that are one number, or one for each channel of sums, as a vector."""
        channels = len(pending.multipliers)
        dense = getattr(pending.source, "dense", True)
        along = -len(pending.source.by_channel) if isinstance(pending.source, ConstantProduct) else -1
        shape = values.shape
        if values.size == 1 or (values.size == channels and len(shape) >= -along and shape[along] == channels) \
                or (values.size == channels and not dense and len(shape) == 1 and self.proto.op_type == "RequantShift"):
            return values.reshape(-1)
        raise self.refusal(f"its {what} has the shape {list(shape)}, and the sums have {channels} channels",
                           "use one number, or one for each channel")
