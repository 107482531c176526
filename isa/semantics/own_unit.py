"""extension.run_unit: pass items of the activation buffer through the unit of an extension.

Item i is the ``item_bytes`` bytes from ``base + i * item_bytes`` on, in the linear layout; its first bytes become the
unit's result, the others stay.
"""

from tilewright.isa.extension import unit_of
from tilewright.isa.semantics.command_errors import OutsideBufferError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, MemoryPort

__all__ = ["run_unit"]


def run_unit(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute an extension.run_unit."""
    del memory, variant
    unit = unit_of(state.machine)
    assert unit is not None  # execute_command has seen to it
    base, shape = operands["base"], (operands["items"], operands["item_bytes"])
    stop = base + shape[0] * shape[1]
    if stop > state.activations.size:
        raise OutsideBufferError("activation byte", stop - 1, state.activations.size)
    items = state.activations[base:stop].reshape(shape)
    results = unit.compute(items.copy(), unit.settings(operands["own"]))
    items[:, :unit.result_bytes] = results[:, :shape[1]]
