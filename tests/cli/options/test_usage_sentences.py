"""A wrong command line is told what is missing or too much, and what to type instead."""

import pytest

from tests.cli.test_app import invoke, refused


@pytest.mark.parametrize(("words", "told"), [
    (("synth", "nano"), ("--target", "ecp5-25k", "--machine nano")),
    (("synth", "--machine", "nano"), ("--target", "sky130")),
    (("synth", "nano", "--target", "ecp5-25k"), ("'nano'", "--machine nano")),
    (("run", "lenet5", "nano,lanes=4"), ("--machine nano,lanes=4",)),
    (("verilog", "nano"), ("--output", "--machine nano")),
    (("run", "lenet5", "more", "words"), ("'more words'", "run --help")),
    (("rnu", "lenet5"), ("run is near",)),
    (("frobnicate",), ("tilewright --help",)),
    (("board", "nano"), ("'nano'", "orangecrab, ulx3s", "docs/first-change.md")),
    (("board", "ulx3s", "fly"), ("board ulx3s fly", "board ulx3s --help")),
    (("run", "lenet5", "--engin", "fast"), ("--engine is near",)),
    (("run", "lenet5", "--calibrate", "--engine", "cycles"), ("--calibrate needs FILE", "'--engine'")),
    (("run",), ("MODEL", ".onnx", "lenet5")),
    (("diff", "nano"), ("SECOND",)),
    (("run", "lenet5", "--engine", "fsat"), ("'fsat' is not one of 'rtl', 'fast', 'cycles'",)),
    (("check", "lenet"), ("'lenet' is neither; lenet5 is near",)),
    (("check", "nosuch.onnx"), ("there is no file 'nosuch.onnx'",)),
    (("check", "./nosuch"), ("there is no file './nosuch'",)),
    (("check", "nosuch"), ("lenet5, lenet5_accel",)),
])
def test_sentences(words, told):
    sentence = refused(2, *words)
    assert all(each in sentence for each in told), sentence
    assert "Value error" not in sentence


def test_a_name_without_its_ending_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").write_bytes(b"")
    assert "net.onnx is near" in refused(2, "check", "net")


def test_no_command_shows_the_help():
    done = invoke()
    assert done.exit_code == 2
    assert "compare" in done.stdout
    assert done.stderr == ""


def test_a_design_with_a_byte_order_mark_is_read(tmp_path):
    for name, encoding in (("a.toml", "utf-8-sig"), ("b.toml", "utf-16")):
        (tmp_path / name).write_bytes('[machine]\r\npreset = "nano"\r\n'.encode(encoding))
        done = invoke("machine", tmp_path / name)
        assert done.exit_code == 0, done.output
