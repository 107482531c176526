"""The decoder in C gives what the one in Python gives, of good streams and of any bytes."""

import ctypes
import random
from pathlib import Path

import numpy as np
import pytest

import tilewright.isa.coded.weight_code as weight_code
from tests.support.core_kernels import library
from tilewright.isa.coded.weight_code import GROUP, WeightCode, decode_weights
from tilewright.isa.machine import PRESETS


def decoded(code, stream, steps):
    out = np.zeros(GROUP * code.lanes * steps, np.int8)
    decode = library(Path(weight_code.__file__).with_suffix(".c").read_text(encoding="utf-8")).tw_decode_weights
    refused = decode(stream, ctypes.c_size_t(len(stream)), ctypes.c_size_t(code.word_bytes), code.lanes,
                     ctypes.c_size_t(steps), ctypes.c_void_p(out.ctypes.data))
    return None if refused else out


@pytest.mark.parametrize("machine", PRESETS.values(), ids=PRESETS)
def test_any_bytes_are_decoded_alike(machine):
    code, rng = WeightCode.of(machine), random.Random(8)
    for _ in range(60):
        steps = rng.randint(1, 90)
        stream = rng.randbytes(rng.choice((0, 7, 100, 3000)))
        if rng.random() < 0.5:
            stream = bytes(each & rng.choice((255, 17, 0)) for each in stream)      # few bits: narrow groups
        assert decoded(code, stream, steps).tolist() == decode_weights(code, stream, steps).data.tolist()


@pytest.mark.parametrize("code", [WeightCode(0, 8), WeightCode(17, 16), WeightCode(9, 4), WeightCode(2, 2)], ids=str)
def test_sizes_that_no_machine_has_are_refused(code):
    assert decoded(code, bytes(64), 1) is None
