"""A compressed FST file is what was given, behind its lengths; a file without names is refused."""

import gzip

import pytest

from tilewright.sim.waves.fst_file import compress_fst, variables


def test_the_whole_file_is_in_gzip_behind_two_lengths(tmp_path):
    plain, packed = tmp_path / "plain.fst", tmp_path / "packed.fst"
    plain.write_bytes(bytes(range(256)) * 1000)
    compress_fst(plain, packed)
    content = packed.read_bytes()
    assert (content[0], int.from_bytes(content[1:9], "big"), int.from_bytes(content[9:17], "big")) == (
        254, len(content) - 1, 256_000)
    assert gzip.decompress(content[17:]) == plain.read_bytes()
    assert len(content) < 10_000


def test_names_are_read_with_their_scopes_and_bits(tmp_path):
    names = b"".join((b"\xfe\x00top\0\0", b"\xfc\x00\x07p::kind\x00\x01", b"\x10\x00clk\0\x01\x00", b"\xfe\x00unit\0\0",
                      b"\xfc\x00\x07\0\x01", b"\x10\x00kind [5:0]\0\x06\x00", b"\xff", b"\x10\x00a.b [3:0]\0\x04\x00",
                      b"\xff"))
    block = len(names).to_bytes(8, "big") + b"\xf0" + bytes([len(names) - 15]) + names
    file = tmp_path / "some.fst"
    file.write_bytes(b"\x00" + (8 + 3).to_bytes(8, "big") + b"abc"
                     + b"\x06" + (8 + len(block)).to_bytes(8, "big") + block)
    assert [(each.name, each.bits, each.named) for each in variables(file)] == [
        ("top.clk", "", False), ("top.unit.kind", "[5:0]", True), ("top.a.b", "[3:0]", False)]


def test_a_file_without_names_is_refused(tmp_path):
    (tmp_path / "some.fst").write_bytes(b"\x00" + (8).to_bytes(8, "big"))
    with pytest.raises(ValueError, match="names"):
        list(variables(tmp_path / "some.fst"))
