"""Logic beyond the tables: multipliers and flip-flops of extensions and curves count, products by their size."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.execution.test_report import record
from tilewright.energy import activity
from tilewright.energy.actions import Clock, actions_of
from tilewright.energy.activity import predict_toggles
from tilewright.energy.added_logic import CURVE_PRODUCTS, CURVE_TOGGLES, extension_logic, product_toggles
from tilewright.isa.extension import extended, load_extension
from tilewright.isa.machine import PRESETS
from tilewright.isa.words.curve_fields import CURVATURE, PIECE, PIECES, SLOPE, VALUE
from tilewright.isa.words.word_curve import curve_bytes, follow_curve

EXAMPLES = Path(__file__).parents[2] / "examples/extensions"
SLOPE_PRODUCT = 9 * 26  # of the example of a stage, for each value


def machine(name, preset):
    return extended(PRESETS[preset], load_extension(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_stage_has_a_multiplier_for_each_value_of_a_vector(preset):
    found = extension_logic(machine("prelu", preset))
    assert found.partial_products == PRESETS[preset].post_lanes * SLOPE_PRODUCT
    assert found.registers > PRESETS[preset].post_lanes * 35  # the register of each product


def test_a_unit_without_multipliers_makes_no_products():
    unit = machine("argmax", "nano")
    assert extension_logic(unit).partial_products == 0
    assert product_toggles(record(1000, table_read=640), unit) == 0


def test_a_machine_without_an_extension_makes_no_products():
    assert product_toggles(record(1000, table_read=640), PRESETS["base"]) == 0


@pytest.mark.parametrize("preset", ["nano", "base"])
def test_products_of_a_stage_cost_by_their_size_what_requantising_does(preset):
    counts = record(1000, requantized=6400, table_read=6400)
    stage = machine("prelu", preset)
    toggles = predict_toggles(counts, "conv", None, stage)
    bare, own = (actions_of(counts, each, 10, toggles, Clock(200.0)) for each in (PRESETS[preset], stage))
    more = own["post_processing.register_toggle"] - bare["post_processing.register_toggle"]
    requantised = 6400 * activity._table()["post_processing"]["requantized"]
    assert more == pytest.approx(requantised * SLOPE_PRODUCT / 24**2, rel=0.05)
    assert {action for action in own if own[action] != bare[action]} == {
        f"post_processing.{event}" for event in ("register_toggle", "register_cycle", "leakage_ns")}


def curve_of(function):
    """Return the curve that approaches a function of words: a parabola through three points of each piece."""
    middle = PIECE * np.arange(PIECES) - 32_768 + PIECE // 2
    least, here, most = (function(middle + part) for part in (-PIECE // 2, 0, PIECE // 2))
    bend = (least + most - 2 * here) / 2 / (PIECE // 2) ** 2
    return curve_bytes(*(np.round(each).astype(np.int64) for each in (
        here * 2**7, (most - least) / PIECE * 2**13, bend * 2**20))).view("<u8")


def bits_along(words, curve):
    """Return the contents of the registers on a word's way along a curve, a string of bits each, by the definition."""
    place = words.astype(np.int64) + 32_768
    along, entry = place % PIECE - PIECE // 2, curve[place // PIECE]
    fields = []
    for first, bits in ((0, VALUE), (VALUE, SLOPE), (VALUE + SLOPE, CURVATURE)):
        raw = (entry >> np.uint64(first)).astype(np.int64) & (1 << bits) - 1
        fields.append(raw - (raw >> bits - 1 << bits))
    value, slope, curvature = fields
    bend = curvature * along
    bent = slope + (bend + 64 >> 7)
    total = (value << 6) + bent * along + (1 << 12) >> 13
    registers = [(words, 16), *[(along, 9)] * 3, (entry.astype(np.int64), 58), (along, 9), (slope, SLOPE), (bend, 25),
                 (value, VALUE), (along, 9), (bent, SLOPE), (value, VALUE), (bent * along, 27), (value, VALUE),
                 (total, 27), (follow_curve(words, curve), 16)]
    return ["".join(format(int(each[n]) & (1 << bits) - 1, f"0{bits}b") for each, bits in registers)
            for n in range(len(words))]


def test_a_word_on_a_curve_changes_as_many_bits_as_are_charged():
    functions = (lambda x: 32_000 * np.tanh(x / 8192), lambda x: 60_000 / (1 + np.exp(-x / 4096)) - 30_000,
                 lambda x: x / (1 + np.exp(-1.702 * x / 8192)))
    rng, changed = np.random.default_rng(0), []
    for function in functions:
        for spread in (2_000, 8_000):
            words = np.clip(rng.normal(0, spread, 500), -32_768, 32_767).astype(np.int16)
            rows = bits_along(words, curve_of(function))
            changed.append(np.mean([sum(a != b for a, b in zip(*each, strict=True)) for each in pairwise(rows)]))
    assert np.mean(changed) == pytest.approx(CURVE_TOGGLES, rel=0.05)
    assert changed == pytest.approx([CURVE_TOGGLES] * len(changed), rel=0.15)


def test_words_on_a_curve_cost_their_registers_and_both_multipliers():
    curved = replace(PRESETS["base"], wide_words=True)
    counts = record(1000, requantized=6400, table_read=6400)
    found = []
    for words in (0, 3200):
        toggles = predict_toggles(counts, "conv", None, curved, words)
        found.append(actions_of(counts, curved, 10, toggles, Clock(200.0), curved=words))
    requantised = activity._table()["post_processing"]["requantized"]
    more = 3200 * (CURVE_TOGGLES + requantised * CURVE_PRODUCTS / 24**2)
    assert found[1]["post_processing.register_toggle"] - found[0]["post_processing.register_toggle"] \
        == pytest.approx(more, rel=0.01)
    assert {each for each in found[1] if found[1][each] != found[0][each]} == {"post_processing.register_toggle"}
