"""Errors of bench/, word by word."""

import pytest

from tests.support.wording import raised_by
from tilewright.bench.cases import matrix
from tilewright.models import NAMES

SENTENCES = {
    f"InputError: Networks to bench must be of {', '.join(NAMES)}, not 'alexnet'":
        lambda: matrix(["alexnet"], ["base"], "fast"),
    "InputError: Engine must be one of rtl, fast, not 'slow'": lambda: matrix(["lenet5"], ["base"], "slow"),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
