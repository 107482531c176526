"""Kinds of :exc:`tilewright.errors.CompileError`: one clear sentence for each fault of a model.

Every model is untrusted input, so everything that can be wrong with one ends in such an error.
"""

from collections.abc import Sequence

from tilewright.errors import CompileError

__all__ = ["BadModelError", "ModelTooLargeError", "UnsupportedModelError", "UnsupportedNodeError", "raise_all"]


class BadModelError(CompileError):
    """The file is no valid ONNX model, or its contents contradict each other."""

    way_out = "export or quantise the model again"


class ModelTooLargeError(CompileError):
    """The file or one of its tensors is larger than the compiler takes."""

    way_out = "make the model or its input smaller, or cut the model into parts"


class UnsupportedModelError(CompileError):
    """The model as a whole is valid but of a form that is not compiled: not quantised, of a dynamic shape ..."""


class UnsupportedNodeError(CompileError):
    """One node of a valid model is not compiled.

    Parameters
    ----------
    node : str
        Its name in the model, or of the tensor it computes where it has none.
    op : str
        Its ONNX operator.
    reason : str
        The unsupported feature, as the middle of a sentence.
    way_out : str
        What to do about it, as the end of a sentence.

    Attributes
    ----------
    others : tuple of UnsupportedNodeError
        Further nodes of the same model that are not compiled, as far as they are known already.
    options : tuple of str
        The options with which the same command runs; empty if none are known.
    """

    def __init__(self, node: str, op: str, reason: str, way_out: str) -> None:
        super().__init__(f"Node {node!r} ({op}) is not supported: {reason}; {way_out}", way_out)
        self.node, self.op, self.reason = node, op, reason
        self.others: tuple[UnsupportedNodeError, ...] = ()
        self.options: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The message, including the way out."""
        return str(self)


def raise_all(refusals: Sequence[UnsupportedNodeError]) -> None:
    """Raise the first of ``refusals``, which then knows the others; do nothing without any."""
    if refusals:
        first, *others = refusals
        first.others = tuple(others)
        raise first
