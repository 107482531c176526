"""A shell completes commands and options."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("words", "expected"), [("tilewright ru", "run"), ("tilewright run --mach", "--machine")])
def test_a_word_is_completed(words, expected):
    environment = os.environ | {"_TILEWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": words,
                                "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run([sys.executable, "-m", "tilewright"], env=environment, capture_output=True, text=True,
                          check=True)
    assert done.stdout.split() == [expected]
