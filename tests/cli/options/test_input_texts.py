"""A name that options give a shape, a value or a state twice is refused, not the first of them dropped."""

import pytest

from tilewright.cli.options.input_texts import pairs_given, shapes_given, values_given
from tilewright.errors import InputError


@pytest.mark.parametrize(("read", "texts"), [
    (shapes_given, ["height=8", "height=9"]), (values_given, ["height=8", "height=9"]),
    (pairs_given, ["height=a", "height=b"]),
])
def test_a_name_that_is_given_twice_is_refused(read, texts):
    with pytest.raises(InputError, match="'height'"):
        read(texts)
    assert list(read([texts[0], "width=7"])) == ["height", "width"]
