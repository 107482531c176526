"""What layers load alike is in memory once, and stays on the chip where there is room for it."""

from dataclasses import replace

import onnx
import pytest

from tests.support.recurrent_models import recurrent_model
from tilewright.compiler.compile import compile_file
from tilewright.compiler.schedule.rings import with_lasting
from tilewright.compiler.schedule.steps import Need
from tilewright.isa.machine import PRESETS
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence


def need(first, last=None, layer=0):
    return Need("weights", first, first if last is None else last, layer, 0, 0)


def lasting(contents, sizes, capacity):
    needs = [need(step, layer=step) for step in range(len(contents))]
    return with_lasting(needs, lambda each: contents[each.layer] or None, lambda each: sizes[each.layer], capacity)


def test_needs_of_the_same_content_become_one_that_serves_all_their_steps():
    found = lasting("abab", [4, 2, 4, 2], 64)
    assert [(each.first, each.last, sorted(each.among)) for each in found.needs] == [(0, 2, [0, 2]), (1, 3, [1, 3])]
    assert found.left == 58
    assert sorted(found.places.values()) == [(58, 62), (62, 64)]


def test_what_is_computed_or_alone_is_loaded_each_time():
    found = lasting(["a", "", "b", ""], [4, 4, 4, 4], 64)
    assert len(found.needs) == 4
    assert (found.left, found.places) == (64, {})


@pytest.mark.parametrize(("capacity", "kept"), [(19, False), (20, True)])
def test_room_is_left_for_two_of_the_largest_of_the_others(capacity, kept):
    found = lasting("aba", [4, 8, 4], capacity)
    assert bool(found.places) is kept


def weight_bytes(tmp_path, steps, machine):
    """Return the bytes of constants in memory of a quantised RNN, and how many loads there are of such."""
    path = tmp_path / f"net{steps}.onnx"
    onnx.save(recurrent_model("RNN", sizes=(steps, 1, 16, 64), states="none"), path)
    compiled = compile_file(find_model(str(path), Silence()).path, machine)
    loads = sum(command.instruction.mnemonic == "ldw" for _, command in compiled.program.commands())
    return sum(len(data) for _, data in compiled.images), loads


def test_the_weights_of_a_recurrence_are_in_memory_and_loaded_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    (few, loads), (many, as_many) = (weight_bytes(tmp_path, steps, PRESETS["base"]) for steps in (4, 8))
    assert many - few < 1024
    assert as_many == loads


def test_where_they_have_no_room_beside_the_others_they_are_loaded_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    small = replace(PRESETS["base"], weight_bytes=4096, name="small")
    assert weight_bytes(tmp_path, 8, small)[1] > weight_bytes(tmp_path, 4, small)[1]


def test_nothing_lasts_beside_layers_that_keep_their_loads_side_by_side():
    needs = [need(0, layer=0), need(2, layer=2), replace(need(1, layer=1), among=frozenset((1, 3)))]
    found = with_lasting(needs, lambda each: "a" if each.layer != 1 else "b", lambda _: 4, 64)
    assert (found.needs, found.left, dict(found.places)) == (tuple(needs), 64, {})
