"""act: pass the sums of one mac command through post-processing to the result buffer.

    q = requantise(sum, parameters of the channel, zero_point, low, high); integer: shift_requantise or long_requantise;
               a machine without float_requantise takes other scales for 1
    whole      in place of q the four bytes of sum + bias, little-endian: channels 4 n .. 4 n + 3 of the result
    wide       q has 16 bits, and the bounds of pool.set_words: its upper byte as below, the lower one, less 128, 16 *
               plane_words bytes on (`isa.words.word_planes`); with `table` q follows the curve that the tables are,
               before (`isa.words.word_curve`)
    residual   q = the sum of q and the byte that lies where it will go; own_second: q is the second operand
    table      q = byte 128 + q of the value table; or what the stage of an extension makes of it, if that is on;
               table_first: before the residual is added
    pooled     result[wy, wx] = the maximum over each window of pool.window
    else       result[y, x] = q

act.rows takes no sums: `isa.semantics.act_rows`.

result[y, x] of channel n is byte base + y * row_step + x * pixel_step + n. Sums beyond the output's rows, width or
channels are dropped. The arithmetic is that of `isa.numerics`.
"""

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.extension import StageInForce, stage_of
from tilewright.isa.machine import TILE_BYTES
from tilewright.isa.semantics.act_rows import normalise_rows
from tilewright.isa.semantics.array_arithmetic import add_residual, long_requantise, requantise, shift_requantise
from tilewright.isa.semantics.buffer_places import Places, inside, run_places
from tilewright.isa.semantics.command_errors import (
    OutsideBufferError,
    ResidualPooledError,
    Shape,
    SumsMismatchError,
    SumsMissingError,
    WholeSumsError,
    WideWordsError,
)
from tilewright.isa.semantics.coprocessor_state import CoprocessorState, Int32, MemoryPort
from tilewright.isa.semantics.pool import window_maxima
from tilewright.isa.words.word_curve import follow_curve
from tilewright.isa.words.word_planes import planes_of, requantise_words

__all__ = ["post_process"]

Words = NDArray[np.uint64]


def post_process(state: CoprocessorState, memory: MemoryPort, variant: str, operands: dict[str, int]) -> None:
    """Execute an act.run or an act.rows."""
    del memory
    if variant == "rows":
        normalise_rows(state, operands)
        return
    settings = state.settings["act"].require("width")
    rows, width, channels = operands["rows"], settings["width"], operands["channels"]
    sums = _take_sums(state, rows, width, channels, winograd=bool(operands["winograd"]))
    if operands["residual"] and operands["pooled"]:
        raise ResidualPooledError
    if operands["winograd"] and state.machine.pairs_channels and not operands["shared"]:
        words = _pixel_parameters(state, operands["parameter_base"], sums.shape)
    else:
        words = _channel_parameters(state, operands["parameter_base"], channels)
    if operands["wide"]:
        _leave_words(state, operands, sums, (_bias(words), _scale(words)))
        return
    if operands["whole"]:
        _leave_whole(state, operands, sums, _bias(words))
        return
    clamp = settings["zero_point"], settings["low"], settings["high"]
    if settings["integer"] and settings["integer_long"]:
        values = long_requantise(sums, words, *clamp, twice=bool(settings["integer_twice"]))
    elif settings["integer"]:
        values = shift_requantise(sums, words, settings["integer_shift"], *clamp)
    else:
        scale = _scale(words) if state.machine.float_requantise else np.float32(1)
        values = requantise(sums, _bias(words), scale, *clamp)
    first = bool(operands["residual"] and operands["table"] and operands["table_first"])
    if first:
        values = state.tables[operands["table_slot"]][values.astype(np.int16) + 128]
    if operands["residual"]:
        other = state.results[_result_places(state, operands["base"], rows, width, channels)]
        values = add_residual(values, other, settings)
    stage = _stage_in_force(state, operands)
    if stage is not None:
        values = stage.compute(values, state.tables[operands["table_slot"]])
    elif operands["table"] and not first:
        values = state.tables[operands["table_slot"]][values.astype(np.int16) + 128]
    if operands["pooled"]:
        values, touched = window_maxima(state.settings["pool"], values)
        places = _result_places(state, operands["base"], *values.shape)
        state.results[places[touched]] = values[touched]
    else:
        state.results[_result_places(state, operands["base"], rows, width, channels)] = values


def _leave_whole(state: CoprocessorState, operands: dict[str, int], sums: Int32, bias: Int32) -> None:
    """Write the bytes of the sums with their biases to the result buffer."""
    settings = state.settings["act"]
    if any(operands[name] for name in ("residual", "pooled", "table")) or (
            settings["zero_point"], settings["low"], settings["high"], settings["integer"]) != (0, -128, 127, 0):
        raise WholeSumsError
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(sums + bias, "<i4").view(np.int8)
    state.results[_result_places(state, operands["base"], *values.shape)] = values


def _leave_words(state: CoprocessorState, operands: dict[str, int], sums: Int32,
                 parameters: tuple[Int32, NDArray[np.float32]]) -> None:
    """Write both planes of the requantised words of 16 bits to the result buffer."""
    if any(operands[name] for name in ("residual", "pooled", "whole")) or (
            operands["table"] and not state.machine.bends_words):
        raise WideWordsError
    given = state.settings["pool"]
    words = requantise_words(sums, *parameters, given["word_zero"], (given["word_low"], given["word_high"]))
    if operands["table"]:
        words = follow_curve(words, np.ascontiguousarray(state.tables).reshape(-1).view("<u8"))
    for plane, base in zip(planes_of(words), (0, TILE_BYTES * given["plane_words"]), strict=True):
        state.results[_result_places(state, operands["base"] + base, *plane.shape)] = plane


def _stage_in_force(state: CoprocessorState, operands: dict[str, int]) -> StageInForce | None:
    """Return the stage of the machine's extension, if it takes the place of the table."""
    stage, given = stage_of(state.machine), state.settings["extension"]
    if stage is None or not operands["table"] or operands["residual"] or not given.get("enable", 0):
        return None
    return StageInForce(stage, stage.settings(given), given["channel"])


def _take_sums(state: CoprocessorState, rows: int, width: int, channels: int, *, winograd: bool) -> Int32:
    """Return the oldest mac command's sums (rows, width, channels), which are taken from the queue."""
    if not state.sums:
        raise SumsMissingError
    tile = state.sums.popleft()
    even = 2 if winograd else 1
    lanes = -(-channels // state.machine.lanes) * state.machine.lanes
    shape = -(-rows // even) * even, -(-width // even) * even, lanes
    if tile.winograd != winograd or tile.sums.shape != shape:
        raise SumsMismatchError(shape, winograd, tile.sums.shape, tile.winograd)
    return tile.sums[:rows, :width, :channels]


def _channel_parameters(state: CoprocessorState, first: int, channels: int) -> Words:
    """Return the words of channels (channels,)."""
    words = state.parameters[8 * first:8 * (first + channels)].view("<u8")
    if len(words) != channels:
        raise OutsideBufferError("parameters of channel", first + channels - 1, state.machine.parameter_channels)
    return words


def _bias(words: Words) -> Int32:
    """Return the biases of words (..., channels)."""
    return words.astype(np.uint32).view(np.int32)


def _scale(words: Words) -> NDArray[np.float32]:
    """Return the float32 scales of words (..., channels)."""
    mantissa, shift = (words >> 32 & 0xFFFFFF).astype(np.float64), (words >> 56).astype(np.int32)
    return np.ldexp(mantissa, -shift).astype(np.float32)


def _pixel_parameters(state: CoprocessorState, first: int, shape: Shape) -> Words:
    """Return the words of (rows, width, channels): by pixel of a 2x2 tile, the lanes of a group beside each other.

    The number of a group's parameters and that of the pixel are joined by "or": a group begins at a multiple of four.
    """
    rows, width, channels = shape
    lanes, each = state.machine.lanes, state.machine.channel_parameters
    group = first // lanes + each * np.arange(-(-channels // lanes))
    vector = np.arange(each).reshape(2, 2, 1, 1) | group[:, None]
    places = (vector * lanes + np.arange(lanes)).reshape(2, 2, -1)
    start = int(places.min())
    words = _channel_parameters(state, start, int(places.max()) + 1 - start)
    return words[np.tile(places - start, (-(-rows // 2), -(-width // 2), 1))[:rows, :width, :channels]]


def _result_places(state: CoprocessorState, base: int, rows: int, width: int, channels: int) -> Places:
    settings = state.settings["act"]
    places = run_places(base, (rows, width, channels), (settings["row_step"], settings["pixel_step"]))
    return inside("result", places, state.results)
