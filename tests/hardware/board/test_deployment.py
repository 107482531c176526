"""A network on a board: the bitstream's own top module in Verilator, spoken to at its serial pins."""

import binascii
import contextlib
import os
import re
import sys
import threading
import types

import numpy as np
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.bench import ROOT
from tests.support.onnx_models import ModelBuilder
from tilewright.errors import ToolError
from tilewright.hardware.board import deployment as boards
from tilewright.hardware.board.boards import BOARDS
from tilewright.hardware.board.deployment import Deployment, answer_of, deploy, frame, frame_of, outputs_of
from tilewright.isa.machine import preset
from tilewright.models import builtin, data
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.tools.progress import Silence

ULX3S = BOARDS["ulx3s"]
ORANGECRAB = BOARDS["orangecrab"]
MODEL = builtin("lenet5")
QUICK = 10
"""Clock cycles per bit in simulation: the whole talk takes seconds."""

RESET = b""
READY = 0x10
ERROR = 0x40


@pytest.fixture(scope="module")
def board() -> Deployment:
    return deploy(ULX3S, MODEL, preset("nano"), cycles_per_bit=QUICK)


@pytest.fixture(scope="module")
def digits() -> data.Digits:
    return data.samples()


@pytest.fixture(scope="module")
def talk(board, digits):
    """Return what was sent to a simulated board, by name, and the lines it said: the first before anything was sent."""
    images = [frame_of(board, digits.images[i:i + 1]) for i in range(2)]
    damaged = bytearray(images[1])
    damaged[500] ^= 0x08
    sent = {
        "first digit": images[0],
        "wrong length": frame(bytes(1000)),
        "wrong CRC": bytes(damaged),
        "cut short": images[1][:300],
        "who is there": frame(b""),
        "noise, then second digit": b"WTIST\0\xffT" + images[1],
        "reset": RESET,
        "first digit again": images[0],
    }
    lines = boards.simulate(board, list(sent.values()), Silence(), cycles_per_bit=QUICK)
    assert len(lines) == 1 + len(sent)
    return dict(zip(["start", *sent], lines, strict=True))


def test_it_says_what_it_is(talk, board):
    assert talk["start"].text == talk["who is there"].text == board.program.greeting
    assert board.program.greeting == "ready lenet5 on nano, 1024 bytes a frame"
    assert talk["start"].leds == READY


@pytest.mark.parametrize(("sent", "index"), [("first digit", 0), ("first digit again", 0),
                                             ("noise, then second digit", 1)])
def test_it_recognises_digits_as_onnx_runtime_does(talk, board, digits, sent, index):
    answer = answer_of(talk[sent].text)
    (expected,) = session(MODEL).run(None, {"image": digits.images[index:index + 1]})
    np.testing.assert_array_equal(outputs_of(board, answer)[0], expected, strict=True)
    assert answer.class_ == expected.argmax() == digits.labels[index]
    assert talk[sent].leds == READY | answer.class_
    assert 5_000 < answer.cycles < 60_000


def test_malformed_frames_are_told_and_the_next_one_works(talk, board, digits):
    assert talk["wrong length"].text == "error a frame must have 1024 bytes, not 1000"
    good = frame_of(board, digits.images[1:2])[-2:]
    assert talk["wrong CRC"].text.endswith(f", not {int.from_bytes(good, 'little')}")
    assert talk["wrong CRC"].text.startswith("error the CRC of the frame must be ")
    # 4 of the 300 bytes are the frame's head.
    assert talk["cut short"].text == "error the frame ends after 296 of its bytes"


def test_the_reset_button_starts_it_again(talk):
    assert talk["reset"].text == talk["start"].text


def test_the_real_line_has_115200_baud():
    """The program that goes into the bitstream, at the board's own rate: it greets, and hears a frame."""
    board = deploy(ULX3S, MODEL, preset("nano"))
    lines = boards.simulate(board, [frame(b"")], Silence(), cycles_per_bit=ULX3S.cycles_per_bit)
    assert [line.text for line in lines] == [board.program.greeting] * 2
    character = 10 * 25e6 / 115_200
    assert lines[1].cycle - lines[0].cycle == pytest.approx((6 + len(board.program.greeting) + 1) * character, rel=0.05)


def test_a_board_with_a_divided_clock_and_a_light_of_three_colours(digits):
    """At its pins: 48 MHz, a button and LEDs that are low when pressed and lit; red, green and blue are bits 0 to 2."""
    board = deploy(ORANGECRAB, MODEL, preset("nano"), cycles_per_bit=QUICK)
    sent = [frame_of(board, digits.images[:1]), frame(bytes(1000)), RESET]
    start, digit, wrong, again = boards.simulate(board, sent, Silence(), cycles_per_bit=QUICK)
    assert (start.text, start.leds) == (again.text, again.leds) == (board.program.greeting, 0b010)
    answer = answer_of(digit.text)
    (expected,) = session(MODEL).run(None, {"image": digits.images[:1]})
    np.testing.assert_array_equal(outputs_of(board, answer)[0], expected, strict=True)
    assert answer.class_ == digits.labels[0]
    assert digit.leds == 0b010
    assert wrong.text == "error a frame must have 1024 bytes, not 1000"
    assert wrong.leds == 0b011
    assert again.cycle - wrong.cycle > 2 * 256


def test_frames_have_the_crc_of_the_standard():
    # CRC-16/IBM-3740: the catalogue's check value is 0x29b1, of "123456789"; here with a length before it.
    assert binascii.crc_hqx(b"123456789", 0xFFFF) == 0x29B1
    assert frame(b"") == b"TW\0\0" + binascii.crc_hqx(b"\0\0", 0xFFFF).to_bytes(2, "little")


def test_a_model_that_is_none_for_a_board_is_refused(tmp_path):
    builder = ModelBuilder("qdq", seed=1)
    wide = builder.conv(builder.input((1, 3, 8, 8)), 4, kernel=3, pads=(1, 1, 1, 1))
    builder.output(wide)
    builder.output(builder.conv(wide, 4, kernel=3, pads=(1, 1, 1, 1)))
    path = tmp_path / "two.onnx"
    path.write_bytes(builder.finish())
    sentence = refused(2, "board", "ulx3s", "simulate", "--model", path)
    assert "digit" in sentence
    assert "several" in sentence


def test_several_inputs_come_in_one_frame_and_several_outputs_in_one_answer(tmp_path):
    builder = ModelBuilder("qdq", seed=5)
    left, right = builder.input((1, 3, 6, 5)), builder.input((1, 4, 5, 7))
    builder.output(builder.conv(left, 4, kernel=3))
    builder.output(builder.conv(right, 2, kernel=3))
    path = tmp_path / "two.onnx"
    path.write_bytes(builder.finish())
    board = deploy(ULX3S, path, preset("nano"), cycles_per_bit=QUICK)
    names = [info.onnx_name for info in board.program.inputs]
    rng = np.random.default_rng(0)
    feeds = [{info.onnx_name: rng.normal(size=info.onnx_shape).astype(np.float32) for info in board.program.inputs}
             for _ in range(2)]
    frames = [frame_of(board, *(feed[name] for name in names)) for feed in feeds]
    start, *lines = boards.simulate(board, frames, Silence(), cycles_per_bit=QUICK)
    assert start.text == board.program.greeting == "ready two on nano, 230 bytes a frame"
    for feed, line in zip(feeds, lines, strict=True):
        answer = answer_of(line.text)
        wanted = session(path).run(None, feed)
        for found, expected in zip(outputs_of(board, answer), wanted, strict=True):
            np.testing.assert_array_equal(found, expected, strict=True)
        assert answer.class_ == np.argmax(answer.values[:wanted[0].size])


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("--digits", "0"), "Number of digits must be in 1..32, not 0"),
    (("--cycles-per-bit", "2"), "Cycles per bit must be in 8..65535, not 2"),
    (("--machine", "giant"), ("Machine must be one of nano, base, large, base_depthwise, large_depthwise, "
                              "base_integer, a design file (.toml), or one of these with changes, such as "
                              "base,lanes=8, not 'giant'")),
])
def test_bad_options_are_refused(arguments, sentence):
    assert refused(2, "board", "ulx3s", "simulate", *arguments) == sentence


@pytest.mark.parametrize(("name", "sentence"), [
    ("icebreaker", "amaranth-boards has its pins, and "),
    ("orangecrap", "orangecrab is near; "),
])
def test_another_board_is_refused_with_those_there_are(name, sentence):
    assert refused(2, "board", name, "build", "-o", "out") == (
        f"Board must be one of orangecrab, ulx3s, not {name!r}; {sentence}"
        'docs/first-change.md says under "A board" how one is added')


def test_the_help_lists_the_boards():
    text = invoke("board", "--help").stdout
    assert all(f"{board.name} " in text and board.title in text for board in BOARDS.values())
    assert "Example: tilewright board ulx3s simulate" in text


class TestSend:
    """The host's side of a real line, with a pseudo-terminal in place of the board."""

    @pytest.fixture
    def line(self):
        """Return the path of a serial port, and a function that lets another thread answer what comes there."""
        master, slave = os.openpty()
        heard, threads = [], []

        def answering(*answers: str):
            def answer():
                for text in answers:
                    frame_bytes = b""
                    while len(frame_bytes) < 4 or len(frame_bytes) < 6 + int.from_bytes(frame_bytes[2:4], "little"):
                        frame_bytes += os.read(master, 4096)
                    heard.append(frame_bytes)
                    os.write(master, text.encode() + b"\n")
            threads.append(threading.Thread(target=answer, daemon=True))
            threads[-1].start()
            return heard

        yield os.ttyname(slave), answering
        for thread in threads:
            thread.join(10)
        os.close(master)
        os.close(slave)

    def test_the_answer_is_printed(self, line, digits):
        port, answering = line
        board = deploy(ULX3S, MODEL, preset("nano"))
        heard = answering(board.program.greeting, "class 1 cycles 42709 values 1 2 -3")
        done = invoke("board", "ulx3s", "send", "--port", port)
        assert (done.exit_code, done.stdout) == (0, "class 1, 42,709 cycles, values 1 2 -3\n"), done.output
        assert heard == [frame(b""), frame_of(board, digits.images[:1])]

    def test_another_model_on_the_board_is_told(self, line):
        port, answering = line
        answering("ready vgg16 on nano, 99 bytes a frame")
        sentence = refused(1, "board", "ulx3s", "send", "--port", port)
        assert "not 'ready vgg16 on nano, 99 bytes a frame': give the --model and --machine" in sentence

    def test_what_is_no_port_is_refused(self, tmp_path):
        (tmp_path / "file").touch()
        assert "must be one, and is not" in refused(2, "board", "ulx3s", "send", "--port", tmp_path / "file")
        assert "cannot be opened" in refused(2, "board", "ulx3s", "send", "--port", tmp_path / "nothing")


def test_the_manuals_example_sends_that_frame(board, digits, monkeypatch, capsys):
    """Run the Python code of docs/fpga.md with a module in place of pyserial."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "fpga.md").read_text(), re.DOTALL)
    written = []

    class Serial(contextlib.nullcontext):
        def __init__(self, *arguments, **options):
            super().__init__(self)

        def write(self, data):
            written.append(data)

        def readline(self):
            return b"class 1\n"

    monkeypatch.setitem(sys.modules, "serial", types.SimpleNamespace(Serial=Serial))
    exec(code, {})
    assert written == [frame_of(board, digits.images[:1])]
    assert capsys.readouterr().out == "class 1\n\n"


def test_an_error_of_the_board_is_no_answer():
    with pytest.raises(ToolError, match=r"not 'error the frame ends"):
        answer_of("error the frame ends after 3 of its bytes")
