"""Movements: one tensor made from others, or from part of another one, only by moving elements."""

from dataclasses import dataclass

from tilewright.compiler.network.layers import ByteSteps, Pair, Shape

__all__ = ["AssemblyMove", "ConcatMove", "Movement", "PieceMove", "SliceMove", "UpsampleMove", "ViewMove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcatMove:
    """``output`` is ``inputs`` one after the other along ``axis`` of (channels, height, width), all of one scale."""

    name: str
    onnx_nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str
    axis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceMove:
    """``output`` is the part of ``input`` from (channel, row, column) ``starts``, every ``steps`` rows and columns.

    Its size is that of the tensor ``output``; its channels follow one another.
    """

    name: str
    onnx_nodes: tuple[str, ...]
    input: str
    output: str
    starts: Shape
    steps: Pair = (1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsampleMove:
    """``output`` is ``input`` with every pixel repeated ``factors`` times downwards and to the right."""

    name: str
    onnx_nodes: tuple[str, ...]
    input: str
    output: str
    factors: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMove:
    """``output`` is the bytes of ``input``, in the order in which these lie in memory, counted in another shape."""

    name: str
    onnx_nodes: tuple[str, ...]
    input: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceMove:
    """``output`` is the image whose pixels lie at ``steps`` among the bytes of ``input``."""

    name: str
    onnx_nodes: tuple[str, ...]
    input: str
    output: str
    steps: ByteSteps


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyMove:
    """``output`` has the bytes of the images ``inputs``, whose pixels lie at ``steps``, those of each."""

    name: str
    onnx_nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    output: str
    steps: tuple[ByteSteps, ...]


Movement = AssemblyMove | ConcatMove | PieceMove | SliceMove | UpsampleMove | ViewMove
