"""Operators of the host core that the compiler makes from several ONNX operators: functions of quantised tensors."""

from dataclasses import dataclass

from tilewright.compiler.graph.onnx_operators import OnnxOperator

__all__ = [
    "CoreChain", "CoreHalves", "CoreIntegerSoftmax", "CoreLeast", "CoreLevels", "CoreLogSoftmax", "CoreLookUp",
    "CoreNormalisation",
    "CoreOperator", "CoreQuotient", "CoreResponse", "CoreSoftmax",
]


@dataclass(frozen=True)
class CoreOperator(OnnxOperator):
    """One step of the host core, of several ONNX operators; ``exact`` tells whether ONNX Runtime gives the same."""

    exact: bool = True


@dataclass(frozen=True)
class CoreChain(CoreOperator):
    """Operators that compute each element by itself, one behind the other."""

    op_type: str = "Chain"


@dataclass(frozen=True)
class CoreHalves(CoreOperator):
    """Levels less a zero point of run time, as two int8 halves: what the first less the second is."""

    op_type: str = "HalvesOfLevels"


@dataclass(frozen=True)
class CoreLevels(CoreOperator):
    """Levels, by a scale of run time, of whole sums times a factor, perhaps with a bias and a Relu."""

    op_type: str = "LevelsOfSums"


@dataclass(frozen=True)
class CoreLeast(CoreOperator):
    """The least HardSwish of whole sums times a factor, perhaps with a bias; 0 if none is below that."""

    op_type: str = "LeastOfSums"


@dataclass(frozen=True)
class CoreLookUp(CoreOperator):
    """Each element of x, of 8 bits, by a table: the second input."""

    op_type: str = "LookUp"


@dataclass(frozen=True)
class CoreSoftmax(CoreOperator):
    """Softmax of DequantizeLinear, perhaps with QuantizeLinear behind it."""

    op_type: str = "SoftmaxOfLevels"


@dataclass(frozen=True)
class CoreIntegerSoftmax(CoreOperator):
    """Softmax of levels in whole numbers: `kernels.levels.softmax.softmax_steps`."""

    op_type: str = "SoftmaxInIntegers"


@dataclass(frozen=True)
class CoreLogSoftmax(CoreOperator):
    """LogSoftmax of DequantizeLinear."""

    op_type: str = "LogSoftmaxOfLevels"


@dataclass(frozen=True)
class CoreResponse(CoreOperator):
    """LRN between DequantizeLinear and QuantizeLinear."""

    op_type: str = "ResponseOfLevels"


@dataclass(frozen=True)
class CoreNormalisation(CoreOperator):
    """A normalisation of instances, layers, groups or by the root mean square between the two, perhaps with a Relu."""

    op_type: str = "NormalisationOfLevels"


@dataclass(frozen=True)
class CoreQuotient(CoreOperator):
    """Div of two DequantizeLinear, with QuantizeLinear behind it."""

    op_type: str = "QuotientOfLevels"
