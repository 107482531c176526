"""Words of 16 bits: planes there and back, requantisation element by element, and its error against real numbers."""

import numpy as np
import pytest

from tests.support.coprocessor_state import CONV, OUTPUT, engine_of, run, set_conv, set_parameters
from tilewright.isa import numerics
from tilewright.isa.machine import Machine
from tilewright.isa.semantics.command_errors import UnitMissingError, WideWordsError, WordPlanesError
from tilewright.isa.words.word_planes import WORD_ERROR, planes_of, requantise_words, words_of
from tilewright.sim.values.executor import CommandFailedError

WIDE = Machine(array="winograd", lanes=4, clusters=2, post_lanes=2, wide_words=True)
CLAMP = {"word_zero": -77, "word_low": -30_000, "word_high": 31_000, "plane_words": 40}
RUN = {"base": 64, "rows": 2, "parameter_base": 4, "channels": 7}


def test_every_word_is_256_times_its_upper_byte_and_its_lower_one():
    words = np.arange(-32_768, 32_768).astype(np.int16)
    upper, lower = planes_of(words)
    assert np.array_equal(256 * upper.astype(int) + lower + 128, words)
    assert np.array_equal(words_of(upper, lower), words)


def test_requantisation_is_that_of_numerics_and_within_its_bound():
    rng = np.random.default_rng(1)
    sums = rng.integers(-2**31, 2**31, (3_000, 4)).astype(np.int32)
    bias, real = rng.integers(-2**20, 2**20, 4).astype(np.int32), rng.uniform(2.0**-18, 2.0**-15, 4)
    scale = real.astype(np.float32)
    found = requantise_words(sums, bias, scale, 500, (-32_768, 32_767))
    for (row, channel), word in np.ndenumerate(found[:300]):
        mantissa, shift = numerics.pack_scale(float(scale[channel]))
        assert word == numerics.requantise(int(sums[row, channel]), bias=int(bias[channel]), mantissa=mantissa,
                                           shift=shift, zero_point=500, low=-32_768, high=32_767)
    with np.errstate(over="ignore"):
        exact = (sums + bias).astype(np.float64) * real + 500
    inside = np.abs(exact) < 32_700
    assert inside.sum() > 3_000
    assert np.abs(found - exact)[inside].max() <= 0.5 + WORD_ERROR


def test_sums_of_both_planes_and_results_in_two():
    engine, step = engine_of(WIDE), 16 * 300
    parameters = set_parameters(engine, 16)
    settings = set_conv(CONV)
    for base in (32, 32 + step):
        run(engine, *settings, ("conv.run", {"base": base, "tiles_y": 2, "groups": 2}))
    upper, lower = (engine.state.sums.popleft().sums.astype(np.int64) for _ in range(2))
    run(engine, ("conv.set_planes", {"plane_step": step}), ("conv.run", {"base": 32, "tiles_y": 2, "groups": 2}))
    assert np.array_equal(engine.state.sums[-1].sums, (256 * upper + lower).astype(np.int32))
    sums, expected = engine.state.sums[-1].sums, engine.state.results.copy()
    for y, x, n in np.ndindex(2, 5, 7):
        word = numerics.requantise(int(sums[y, x, n]), **parameters[4 + n], zero_point=CLAMP["word_zero"],
                                   low=CLAMP["word_low"], high=CLAMP["word_high"])
        place = 64 + OUTPUT["row_step"] * y + OUTPUT["pixel_step"] * x + n
        expected[place], expected[place + 640] = word >> 8, (word & 255) - 128
    run(engine, ("act.set_output", OUTPUT), ("pool.set_words", CLAMP), ("act.run", RUN | {"wide": 1}))
    np.testing.assert_array_equal(engine.state.results, expected)


@pytest.mark.parametrize(("machine", "step", "commands", "error"), [
    (WIDE, 4096, [("conv.run", {"base": 0, "tiles_y": 1, "groups": 1, "hold": 1})], WordPlanesError),
    (WIDE, 4112, [("conv23.run", {"base": 0, "tiles_y": 1, "groups": 1})], WordPlanesError),
    (WIDE, 0, [("conv.run", {"base": 0, "tiles_y": 2, "groups": 2}),
               ("act.set_output", OUTPUT | {"width": 4}), ("pool.set_words", CLAMP),
               ("act.run", RUN | {"wide": 1, "whole": 1})], WideWordsError),
    (Machine(), 4096, [], UnitMissingError)])
def test_what_no_hardware_can_do_fails(machine, step, commands, error):
    engine = engine_of(machine)
    with pytest.raises(CommandFailedError) as failed:
        run(engine, *set_conv(CONV | {"tiles_x": 4}), ("conv.set_planes", {"plane_step": step}), *commands)
    assert isinstance(failed.value.__cause__, error)
