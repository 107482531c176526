"""Errors of models/, word by word; names are listed in their order."""

import pytest

from tests.support.wording import raised_by
from tilewright.models import BUILTIN, LARGE, PUBLISHED, builtin, large_file

SENTENCES = {
    f"ValueError: Built-in model must be one of {', '.join((*BUILTIN, *PUBLISHED))}, not 'lenet6'":
        lambda folder: builtin("lenet6"),
    f"ValueError: Large model must be one of {', '.join(LARGE)}, not 'vgg19'":
        lambda folder: large_file("vgg19", folder),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence, tmp_path):
    assert raised_by(lambda: SENTENCES[sentence](tmp_path)) == tuple(sentence.split(": ", 1))
