"""Bits of layers as they are typed: names, parts of names, patterns and numbers."""

import pytest

from tilewright.errors import InputError
from tilewright.runtime.precision.layer_bits import bits_given

LAYERS = ("/conv1/Conv", "/conv10/Conv", "/fc1/Gemm", "2")


@pytest.mark.parametrize(("texts", "meant"), [
    ([], {}),
    (["int4"], dict.fromkeys(LAYERS, 4)),
    (["int4:conv1"], {"/conv1/Conv": 4}),
    (["int4:/conv*"], {"/conv1/Conv": 4, "/conv10/Conv": 4}),
    (["int2:1,fc1"], {"/conv1/Conv": 2, "/fc1/Gemm": 2}),
    (["int4:2"], {"2": 4}),
    (["int4", "int2:3", "int8:1"], {"/conv10/Conv": 4, "/fc1/Gemm": 2, "2": 4}),
])
def test_a_choice_means_its_layers_and_the_last_counts(texts, meant):
    assert bits_given(texts, None).of_weights(LAYERS) == meant


def test_activations_are_chosen_likewise():
    assert bits_given(None, ["int16:fc1"]).of_activations(LAYERS) == {"/fc1/Gemm": 16}


@pytest.mark.parametrize("text", ["int3", "int4:", "int16", "4", "int4:,"])
def test_another_form_is_refused(text):
    with pytest.raises(InputError, match="--weights"):
        bits_given([text], None)


def test_a_layer_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(InputError, match="/fc1/Gemm"):
        bits_given(["int4:fc9"], None).of_weights(LAYERS)
