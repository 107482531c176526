"""Parts of ONNX Runtime's tensors hold the right elements; what it rounds in float is followed through the network."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.compiler.network.layers import Place, TensorInfo
from tilewright.runtime.compared_run import run_session
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.expected_tensors import inexact_tensors, with_parts
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

WHOLE = TensorInfo(name="whole", shape=(5, 4, 6), scale=np.float32(1), zero_point=0)
VALUES = np.random.default_rng(0).integers(-128, 128, (1, 5, 4, 6), dtype=np.int8)


def part(name, shape, offset, *, row_step=30, pixel_step=5):
    place = Place(parent="whole", offset=offset, row_step=row_step, pixel_step=pixel_step)
    return replace(WHOLE, name=name, shape=shape, place=place)


CASES = [("channels", part("channels", (2, 4, 6), 3), VALUES[0, 3:]),
         ("rows", part("rows", (5, 2, 6), 60), VALUES[0, :, 2:]),
         ("phase", part("phase", (5, 2, 3), 35, row_step=60, pixel_step=10), VALUES[0, :, 1::2, 1::2])]


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize(("name", "info", "expected"), CASES, ids=[name for name, *_ in CASES])
def test_a_part_is_cut_from_the_whole(name, info, expected, unsigned):
    shown = (VALUES.astype(np.int16) + 128).astype(np.uint8) if unsigned else VALUES
    found = with_parts({"whole": shown}, {"whole": WHOLE, name: info})
    np.testing.assert_array_equal(found[name], expected)
    assert found["whole"] is shown


def test_what_is_shown_by_itself_or_not_at_all_is_left_as_it_is():
    infos = {"whole": WHOLE, "channels": CASES[0][1]}
    own = np.zeros((1, 2, 4, 6), np.int8)
    assert with_parts({"whole": VALUES, "channels": own}, infos)["channels"] is own
    assert with_parts({"other": own}, infos).keys() == {"other"}


@pytest.mark.parametrize("name", ["squeezenet-64", "detector-96"])
def test_every_layer_of_a_network_with_concatenations_is_compared(name):
    source = find_model(name, Silence())
    comparison = run_session(InferenceSession(source.path, keep_tensors=True), source, None, Silence()).comparison
    assert comparison.matches
    assert comparison.compared == comparison.layers


LAYERS = [(["in"], ["first"], True), (["first"], ["second"], False), (["second"], ["third"], True),
          (["in"], ["fourth"], True)]


def info(name):
    return TensorInfo(name=name, shape=(4, 2, 2), scale=np.float32(1), zero_point=0)


def test_what_follows_from_a_rounding_in_float_is_inexact():
    infos = {name: info(name) for name in ("in", "first", "second", "third", "fourth")}
    assert inexact_tensors(LAYERS, infos) == {"second", "third"}


def test_tensors_that_stay_on_chip_pass_it_on():
    infos = {name: info(name) for name in ("in", "third", "fourth")}
    assert inexact_tensors(LAYERS, infos) == {"second", "third"}
