"""An operator of the host core: its NumPy reference, its C, its cost, and the calls that it rejects.

A kernel works on a :class:`tilewright.isa.program.Call`: operands with address, dtype, ONNX dims and strides, so
everything is a constant in the C. Floats are IEEE float32, rounded after every operation, in the same order in NumPy
and in C; the C is compiled without contraction to fused multiply-adds, and the two agree bit for bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["CTYPES", "Kernel"]


class Kernel(ABC):
    """One ONNX operator on the host core.

    Attributes
    ----------
    op : str
        The operator's ONNX name (operators of com.microsoft have names of their own).
    parameters : Mapping[int, str]
        Inputs that must be constants of the network, as shape, axes or pads: position -> name. The back end puts
        their values, a list (a number where the constant has rank 0), into ``call.attrs`` under that name, where an
        older opset has the attribute of the same name, and leaves the operand absent.
    computable : frozenset of int
        Which of the ``parameters`` may be computed too; they are then operands as others.
    values : Mapping[int, str]
        Inputs whose values it makes use of where they are constants of the network: position -> name. The back end
        puts them into ``call.attrs`` under that name, and leaves the operand where it is.
    limits : str
        Accepted dtypes and ranks, and rejected cases; one sentence for the manual.
    exactness : str
        How close it comes to ONNX Runtime: ``exact`` or a bound; one phrase for the manual.

    Notes
    -----
    ``call.attrs`` are the node's ONNX attributes (those left out are absent, tensors are lists), the values of
    ``parameters`` and ``values``, and ``opset``, the version of the model's operator set (the newest if absent).
    """

    op: str
    parameters: Mapping[int, str] = MappingProxyType({})
    computable: frozenset[int] = frozenset()
    values: Mapping[int, str] = MappingProxyType({})
    limits: str
    exactness: str = "exact"

    @abstractmethod
    def refusal(self, call: Call) -> str | None:
        """Return why ``call`` cannot run, as a sentence without a full stop, or None if it can.

        Only dtypes, dims and attributes count; addresses and strides may be missing (0 and empty).
        """

    @abstractmethod
    def compute(self, call: Call, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        """Return the result for ``arrays``, all in ONNX dims and dtype; None stands for absent operands.

        Addresses and strides do not count here.
        """

    @abstractmethod
    def c_body(self, call: Call, function: str) -> list[str]:
        """Return the statements of the C function ``void function(void)``, without its braces, indented by nothing.

        Pointers are declared already: ``in0``, ``in1``, .. of type ``const <type> *`` for operands that are present,
        ``out`` of type ``<type> *``; C types are ``CTYPES[dtype]``. They are indexed by the operands' ``strides``,
        which may have gaps. Files of C functions that several calls share are named by :meth:`helpers`.
        """

    def helpers(self, call: Call) -> tuple[str, ...]:
        """Return the names of the shared C functions (``c_helpers``) that :meth:`c_body` uses."""
        del call
        return ()

    def bytes_read(self, call: Call) -> int:
        """Return the bytes of operands that ``call`` reads, each of them once."""
        return sum(operand.span_bytes for operand in call.operands[:-1])

    @abstractmethod
    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        """Estimate the core's cycles for ``call``; each access to main memory takes ``memory.latency_cycles``."""


CTYPES = {
    "bool": "uint8_t",
    "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t",
    "float32": "float",
}
