"""A network on a board: assembled, simulated at the pins of the serial line, built into a bitstream.

The serial protocol is that of ``compiler/c/board.c``: frames to the board, lines of text from it.
"""

import binascii
import math
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.compiler.compile import compile_model
from tilewright.compiler.emit.board_image import RAM_BYTES, BoardError, BoardProgram, compile_for_board
from tilewright.compiler.network.operands import from_memory, to_memory
from tilewright.errors import InputError, ToolError
from tilewright.hardware.board.board_design import BoardDesign, contents, design_for
from tilewright.hardware.board.board_simulation import Line, build_board_simulator, talk
from tilewright.hardware.board.boards import Board
from tilewright.isa.machine import Machine
from tilewright.models import data
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.tools.progress import Steps

__all__ = [
    "Answer", "Deployment", "Recognition", "answer_of", "deploy", "frame", "frame_of", "outputs_of", "recognise_digits",
    "simulate",
]

_START = b"TW"
"""The first bytes of every frame."""

_CLASS = re.compile(r"class (\d+) cycles (\d+) values((?: -?\d+)+)")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model on a board: the hardware, and the initial contents of its memories."""

    design: BoardDesign
    program: BoardProgram

    @property
    def files(self) -> dict[str, str]:
        """Contents of the memories as files, by name."""
        return contents(self.design, self.program.ram, self.program.main)


@dataclass(frozen=True, slots=True)
class Answer:
    """A board's answer to a frame: the place of the first output's largest value, clock cycles, all values as int8."""

    class_: int
    cycles: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recognition:
    """An image's label, its class by ONNX Runtime, the board's answer, and whether all values are the same."""

    label: int
    expected: int
    answer: Answer
    equal: bool

    @property
    def right(self) -> bool:
        """Tell whether the board agrees with ONNX Runtime in every value, and with the label."""
        return self.equal and self.answer.class_ == self.expected == self.label


def deploy(board: Board, model: Path, machine: Machine, *, cycles_per_bit: int | None = None) -> Deployment:
    """Return an ONNX file's network on a board; the serial line has the board's own rate, or ``cycles_per_bit``.

    Raises
    ------
    CompileError
        If the model cannot be compiled.
    InputError
        If it cannot be served by a board: inputs or outputs of other types, too large.
    ToolchainError
        If its program does not fit.
    """
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        artefact = compile_model(model, machine, Path(folder) / model.stem)
        try:
            program = compile_for_board(artefact, cycles_per_bit=cycles_per_bit or board.cycles_per_bit)
        except BoardError as error:
            raise InputError(str(error)) from error
    return Deployment(design_for(board, machine, RAM_BYTES, len(program.main)), program)


def frame(payload: bytes) -> bytes:
    """Return the frame that brings ``payload``, of at most 65,535 bytes."""
    content = len(payload).to_bytes(2, "little") + payload
    return _START + content + binascii.crc_hqx(content, 0xFFFF).to_bytes(2, "little")


def frame_of(deployment: Deployment, *arrays: np.ndarray) -> bytes:
    """Return the frame that brings the inputs, in the order of ``BoardProgram.inputs``.

    Each is of the model's own type and shape; it is quantised as ONNX Runtime does.

    Raises
    ------
    ValueError
        If type or shape are another, or there are more or fewer.
    """
    return frame(b"".join(to_memory(quantise_input(info, array), info)
                          for info, array in zip(deployment.program.inputs, arrays, strict=True)))


def answer_of(text: str) -> Answer:
    """Read a line that the board says.

    Raises
    ------
    ToolError
        If it says anything but a class.
    """
    match = _CLASS.fullmatch(text)
    if match is None:
        raise ToolError(f"Board must answer with a class, not {text!r}")
    return Answer(int(match[1]), int(match[2]), tuple(map(int, match[3].split())))


def simulate(deployment: Deployment, frames: Sequence[bytes], steps: Steps, *, cycles_per_bit: int) -> list[Line]:
    """Return the lines of the simulated board: one at the start, and one for each frame.

    The host sends a bit in ``cycles_per_bit`` cycles of the board's system.

    Raises
    ------
    ToolError
        If the simulator cannot be built, or the board falls silent.
    """
    design = deployment.design
    with steps.step(f"Building the simulator of {design.board.name} with {design.machine.name}"):
        build_board_simulator(design)
    with steps.step(f"Simulating {len(frames)} frames at the serial line") as detail:
        return talk(design, deployment.files, frames, cycles_per_bit=cycles_per_bit * design.board.clock_divider,
                    progress=lambda cycle: detail(f"{cycle:,} cycles"))


def recognise_digits(board: Board, model: Path, machine: Machine, digits: int, steps: Steps, *,
                     cycles_per_bit: int) -> list[Recognition]:
    """Send images of digits to a simulated board and compare its answers with ONNX Runtime's and the labels.

    Parameters
    ----------
    board
    model
        An ONNX file for 1x32x32 images.
    machine
    digits
        How many, from the test images that come with Tilewright.
    steps
    cycles_per_bit
        Of the serial line; a real one has `Board.cycles_per_bit`, and most of the time goes into it.

    Raises
    ------
    InputError
        If the model is for other images, or there are fewer.
    ToolError
        If the board says anything else.
    """
    samples = data.samples()
    if not 1 <= digits <= len(samples.labels):
        raise InputError(f"Number of digits must be in 1..{len(samples.labels)}, not {digits!r}")
    with steps.step(f"Compiling {model.name}"):
        deployment = deploy(board, model, machine, cycles_per_bit=cycles_per_bit)
    program = deployment.program
    wanted, more = program.inputs[0], len(program.inputs) > 1 or len(program.outputs) > 1
    if more or (wanted.onnx_dtype, wanted.onnx_shape) != ("float32", (1, 1, data.SIDE, data.SIDE)):
        raise InputError(f"Model must take an image of a digit alone, float32 of shape (1, 1, {data.SIDE}, "
                         f"{data.SIDE}), and give one output, not take {wanted.onnx_dtype} of shape "
                         f"{wanted.onnx_shape}{' with others, or give several' if more else ''}")
    images = [samples.images[i:i + 1] for i in range(digits)]
    frames = [frame_of(deployment, image) for image in images]
    lines = simulate(deployment, frames, steps, cycles_per_bit=cycles_per_bit)
    reference = session(model)
    found = []
    for image, label, line in zip(images, samples.labels, lines[1:], strict=False):
        (expected,) = reference.run(None, {wanted.onnx_name: image})
        answer = answer_of(line.text)
        found.append(Recognition(int(label), int(np.argmax(expected)), answer,
                                 np.array_equal(outputs_of(deployment, answer)[0], expected)))
    return found


def outputs_of(deployment: Deployment, answer: Answer) -> list[np.ndarray]:
    """Return an answer's values as the model's outputs."""
    found, start = [], 0
    for info in deployment.program.outputs:
        stop = start + math.prod(info.shape)
        values = np.array(answer.values[start:stop], np.int8).tobytes()
        found.append(dequantise_output(info, from_memory(values, info)))
        start = stop
    return found
