"""Any function of one tensor of 8 bits: a table of its 256 values, of float32 or of 8 bits."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.compiler.kernels.language.checked import Refused
from tilewright.compiler.kernels.language.expression import Expression, look_up
from tilewright.compiler.kernels.language.look_up_run import FloatTable, is_run, look_up_run, look_up_run_cycles
from tilewright.compiler.kernels.operators.elementwise import Elementwise
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["LOOK_UP", "LookUp"]

_BYTES = ("int8", "uint8")
_RESULTS = ("float32", *_BYTES)
_VALUES = 256


class LookUp(Elementwise, FloatTable):
    """Element ``x`` becomes entry ``x`` of the input ``table``, which is in ascending order of x."""

    parameters: Mapping[int, str] = MappingProxyType({1: "table"})

    def c_body(self, call: Call, function: str) -> list[str]:
        table = self.float_table(call)
        return super().c_body(call, function) if table is None else look_up_run(call, table)

    def cycles(self, call: Call, memory: MemoryTiming) -> int:
        return super().cycles(call, memory) if self.float_table(call) is None else look_up_run_cycles(call, memory)

    def float_table(self, call: Call) -> np.ndarray | None:
        return _table(call) if call.output.dtype == "float32" and is_run(call) else None


def _table(call: Call) -> np.ndarray:
    """Return the table, of the result's dtype."""
    values = call.attrs.get("table")
    if call.output.dtype not in _RESULTS:
        raise Refused(f"{call.kernel} gives {' '.join(_RESULTS)}, not {call.output.dtype}")
    if not isinstance(values, list) or len(values) != _VALUES:
        raise Refused(f"{call.kernel} must have {_VALUES} numbers as table, not {values!r}")
    return np.array(values).astype(call.output.dtype)


def _look_up(call: Call, x: Expression, _: Expression | None = None) -> Expression:
    return look_up(_table(call), x.cast("int32") - int(np.iinfo(x.dtype).min))


LOOK_UP = LookUp("LookUp", _look_up, [_BYTES], inputs=(1, 2), limits="a table of 256 float32, int8 or uint8")
