"""From an ONNX file to a network of fused layers: the passes, in order."""

from pathlib import Path

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import QClamp, QMaxPool
from tilewright.compiler.graph.rewrite import Pass, PassPipeline
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.onnx.reader import load
from tilewright.compiler.passes.canonicalise.bound_maxima import BoundMaxima
from tilewright.compiler.passes.canonicalise.bound_padding import BoundPadding
from tilewright.compiler.passes.canonicalise.flatten_to_kernel import FlattenToKernel
from tilewright.compiler.passes.canonicalise.fold_pad import FoldPad
from tilewright.compiler.passes.canonicalise.follow_views import FollowViews
from tilewright.compiler.passes.canonicalise.merge_moves import MergeMoves
from tilewright.compiler.passes.canonicalise.order_nodes import OrderNodes
from tilewright.compiler.passes.canonicalise.pad_channels import PadChannels
from tilewright.compiler.passes.canonicalise.place_depth_to_space import PlaceDepthToSpace
from tilewright.compiler.passes.canonicalise.place_movements import PlaceMovements
from tilewright.compiler.passes.canonicalise.shift_unsigned import ShiftUnsigned
from tilewright.compiler.passes.canonicalise.split_average import SplitAverage
from tilewright.compiler.passes.fuse.fuse_clamp import FuseClamp
from tilewright.compiler.passes.fuse.fuse_pool import FusePool
from tilewright.compiler.passes.fuse.fuse_residual import FuseResidual, FuseResidualBehindTable
from tilewright.compiler.passes.fuse.fuse_stage import FuseStage
from tilewright.compiler.passes.fuse.fuse_table import FuseTable
from tilewright.compiler.passes.fuse.raise_above_concat import RaiseAboveConcat
from tilewright.compiler.passes.images.as_images import AsImages
from tilewright.compiler.passes.lower.build_layers import build_network
from tilewright.compiler.passes.lower.fuse_chains import FuseChains
from tilewright.compiler.passes.lower.fuse_core import FuseCore
from tilewright.compiler.passes.lower.fuse_levels import FuseLevels
from tilewright.compiler.passes.lower.fuse_softmax import FuseSoftmax
from tilewright.compiler.passes.lower.quantise_sums import QuantiseSums
from tilewright.compiler.passes.lower.recognise_unit import RecogniseUnit
from tilewright.compiler.passes.recognise.equivalents.merged_batches import MergeBatches
from tilewright.compiler.passes.recognise.equivalents.use_equivalents import UseEquivalents
from tilewright.compiler.passes.recognise.fold_affine import FoldAffine
from tilewright.compiler.passes.recognise.function_tables import RecogniseTables
from tilewright.compiler.passes.recognise.infer_shapes import InferShapes
from tilewright.compiler.passes.recognise.leave_to_core import LeaveToCore
from tilewright.compiler.passes.recognise.merge_affine import MergeAffine
from tilewright.compiler.passes.recognise.moves.raise_quantisation import RaiseQuantisation
from tilewright.compiler.passes.recognise.moves.sink_dequantisation import SinkDequantisation
from tilewright.compiler.passes.recognise.moves.turn_images import TurnImages
from tilewright.compiler.passes.recognise.normalisations.rebuild import RebuildNormalisations
from tilewright.compiler.passes.recognise.on_integers import RecogniseOnIntegers
from tilewright.compiler.passes.recognise.prepare_inputs import PrepareInputs
from tilewright.compiler.passes.recognise.qdq.recognise import RecogniseQdq
from tilewright.compiler.passes.recognise.recognise_stage import RecogniseStage
from tilewright.compiler.passes.recognise.remove_identity import RemoveIdentity
from tilewright.compiler.passes.recognise.reread_levels import RereadLevels
from tilewright.compiler.passes.recognise.sink_transposes import SinkTransposes
from tilewright.compiler.passes.recognise.spread_quantisation import SpreadQuantisation
from tilewright.compiler.passes.recognise.sums.float_products import SumFloatProducts
from tilewright.compiler.passes.recognise.sums.run_time import SumRunTimeProducts
from tilewright.compiler.passes.recognise.sums.shifted_sums import RecogniseShifts
from tilewright.isa.extension import BufferUnit, Extension, PostStage

__all__ = ["CANONICALISATION", "PASSES", "RECOGNITION", "compile_network"]

RECOGNITION = (
    OrderNodes(), FuseSoftmax(), RebuildNormalisations(), MergeBatches(), AsImages(), UseEquivalents(),
    SinkTransposes(), RemoveIdentity(), FoldAffine(), RaiseQuantisation(), PrepareInputs(), SinkDequantisation(),
    TurnImages(), RereadLevels(), RecogniseShifts(), RecogniseTables(), MergeAffine(), RecogniseOnIntegers(),
    RecogniseQdq(), SumFloatProducts(), SumRunTimeProducts(), SpreadQuantisation())
"""ONNX operators → integer operators, and what is left for the host core."""

CANONICALISATION = (
    ShiftUnsigned(), InferShapes(), PadChannels(), FoldPad(), SplitAverage(), FlattenToKernel(),
    BoundMaxima(), BoundPadding(), MergeMoves(), PlaceDepthToSpace(), PlaceMovements(), FollowViews(), LeaveToCore())
"""Integer operators → convolutions, averages, additions, clamps and max pooling of int8, windows stated."""

_FUSION = (RaiseAboveConcat(QClamp), FuseClamp(), FuseResidual(), FuseTable(),
           FuseResidualBehindTable(), RaiseAboveConcat(QMaxPool), FusePool())
"""Those → one operator per layer."""

PASSES = (*RECOGNITION, *CANONICALISATION, *_FUSION, FuseLevels(), FuseCore(), QuantiseSums(), FuseChains(),
          OrderNodes())


def _passes(options: Options, extension: Extension | None = None) -> tuple[Pass, ...]:
    """Return the passes that ``options`` ask for, in order; with those for ``extension``."""
    chosen: list[Pass] = []
    for each in PASSES:
        if isinstance(extension, PostStage) and isinstance(each, RecogniseTables):
            chosen.append(RecogniseStage(extension))
        if options.fuse_pool:
            chosen.append(each)
        elif each != RaiseAboveConcat(QMaxPool):
            chosen.append(FusePool(alone=True) if isinstance(each, FusePool) else each)
        if isinstance(extension, PostStage) and isinstance(each, FuseTable):
            chosen.append(FuseStage())
        if isinstance(extension, BufferUnit) and isinstance(each, FuseLevels):
            chosen.append(RecogniseUnit(extension))
    return tuple(chosen)


def _lower(graph: Graph, options: Options = BEST, extension: Extension | None = None) -> Network:
    """Turn a graph as the front end makes it into fused layers.

    Raises
    ------
    CompileError
        If it has something that is not compiled; the message names the node, the reason and a way out.
    """
    # Scales that overflow or are none are refused where they are used, not warned about.
    with np.errstate(all="ignore"):
        return build_network(PassPipeline(_passes(options, extension))(graph))


def compile_network(model: str | Path | bytes, options: Options = BEST, extension: Extension | None = None) -> Network:
    """Read a quantised ONNX model and turn it into fused layers, for a machine with ``extension``.

    Raises
    ------
    CompileError
        If the model is invalid or has something that is not compiled.
    """
    return _lower(load(model), options, extension)
