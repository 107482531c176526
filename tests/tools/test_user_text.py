"""Text is read with and without a byte order mark, in UTF-8 and as Windows writes it."""

import pytest

from tilewright.tools.user_text import read_user_text, user_text

TEXT = 'name = "Größe"\nlanes = 8\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_forms(tmp_path, encoding, end):
    path = tmp_path / "a.toml"
    path.write_bytes(TEXT.replace("\n", end).encode(encoding))
    assert read_user_text(path) == TEXT


def test_what_is_no_text_is_refused():
    with pytest.raises(UnicodeDecodeError):
        user_text(b"\x80\x81")
