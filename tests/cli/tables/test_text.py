"""Names of layers fit a row of a table."""

import pytest

from tilewright.cli.tables.text import short_name


@pytest.mark.parametrize(("name", "shown"), [
    ("conv1", "conv1"),
    ("a" * 40, "a" * 40),
    ("a" * 30 + "b" * 30, "a" * 20 + "…" + "b" * 19),
    ("model/Relu;model/conv2d_10/BiasAdd;model/x", "model/Relu;…"),
    ("a\x1bb", "a\N{REPLACEMENT CHARACTER}b"),
])
def test_long_names_are_shortened(name, shown):
    assert short_name(name).plain == shown
