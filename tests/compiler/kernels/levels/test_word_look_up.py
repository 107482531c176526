"""A look-up of words gives the table's entry for every value of 16 bits, in NumPy and in C."""

import numpy as np
import pytest

from tests.compiler.kernels.operators.test_elementwise import check_c
from tests.support.core_kernels import call_of, compute
from tilewright.compiler.kernels.levels.word_look_up import WORD_LOOK_UP, word_table
from tilewright.compiler.words.word_tensors import join_planes, split_planes


@pytest.mark.parametrize(("channels", "height", "width"), [(8, 64, 128), (1, 3, 5)])
def test_every_word_has_its_entry(channels, height, width):
    rng = np.random.default_rng(4)
    values = rng.permutation(np.arange(-32_768, 32_768)).astype(np.int16)
    words = rng.permutation(np.arange(-32_768, 32_768))[:channels * height * width].astype(np.int16)
    x, table = split_planes(words.reshape(channels, height, width))[None], word_table(values)
    found = compute(call_of("WordLookUp", [x, table], x.shape, "int8"), [x, table])
    np.testing.assert_array_equal(join_planes(found[0]).reshape(-1), values[words.astype(int) + 32_768])
    check_c([("WordLookUp", [x, table], x.shape, "int8", {})])


@pytest.mark.parametrize(("shape", "entries"), [((1, 2, 3, 4), 65_536), ((2, 3, 4), 65_536), ((1, 2, 4, 4), 256)])
def test_what_is_no_pair_of_planes_or_no_table_is_refused(shape, entries):
    call = call_of("WordLookUp", [np.zeros(shape, np.int8), np.zeros(entries, np.int16)], shape, "int8")
    assert WORD_LOOK_UP.refusal(call) is not None
