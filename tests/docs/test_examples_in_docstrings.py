"""Examples in docstrings, and blocks of Python on pages that need nothing but Tilewright, give what they say."""

import doctest
import os
import subprocess
import sys
from importlib import import_module

import pytest

import tilewright
from tests.docs.pages import ROOT, blocks, read
from tests.structure.source import modules

EXAMPLES = [module.name for module in modules() if ">>> " in module.text and module.name in tilewright._HOMES]
PAGES = ("README.md", "docs/python.md", "docs/first-network.md")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_docstrings_hold(name):
    result = doctest.testmod(import_module(name))
    assert result.attempted
    assert not result.failed


def test_the_interface_has_examples():
    assert {"tilewright.functions", "tilewright.runtime.session", "tilewright.errors"} == set(EXAMPLES)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_python_run(page, tmp_path):
    found = [block.text for block in blocks(read(ROOT / page)) if block.info == "python"]
    assert found
    for text in found:
        done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
