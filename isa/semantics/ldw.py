"""ldw: load weights, requantisation parameters and value tables, bus word by bus word.

``base`` counts bus words of the destination, which go to the clusters in turn, 16 bytes each: bus word
i = ((w * clusters + k) * 16) / bus_bytes + part is a part of the 128-bit word w of cluster k.

    main         16 weights of a run, or the first eight of two 3x3 kernels
    ninths       the ninth weights of 16 kernels
    parameters   8 bytes per channel: bias 32, mantissa 24, shift 8 bits, little-endian
    table        byte 128 + q of a slot of 256 is what a value q becomes
    coded_*      the same as without, from ``set_coded.words`` bus words in the code of `isa.coded.weight_code`
"""

from tilewright.isa.coded.weight_code import WeightCode, decode_weights
from tilewright.isa.semantics.command_errors import OutsideBufferError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, MemoryPort

__all__ = ["load_weights"]


def load_weights(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute an ldw."""
    bus = state.machine.bus_bytes
    coded = variant.startswith("coded_")
    words = state.settings["ldw"].require("words")["words"] if coded else operands["words"]
    address, first = operands["address"] // bus * bus, operands["base"] * bus
    data = memory.read_strided(address, (1, 1, words * bus), (0, 0), bus).reshape(-1)
    if coded:
        variant, step = variant.removeprefix("coded_"), state.machine.decoded_bytes
        decoded = decode_weights(WeightCode.of(state.machine), data.tobytes(), operands["steps"])
        data, first = decoded.data, first // step * step
    count = data.size
    target = {"main": state.weight_words, "ninths": state.ninth_words, "parameters": state.parameters,
              "table": state.tables}[variant].reshape(-1)
    if first + count > target.size:
        raise OutsideBufferError(f"{variant} byte", first + count - 1, target.size)
    target[first:first + count] = data
    state.unpacked.clear()
