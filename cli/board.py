"""The commands ``board ulx3s build``, ``simulate`` and ``send``; see `hardware.board.deployment`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import InputFile, JsonFile, MachineName, machine_named, model_named, write_json
from tilewright.cli.options.refusals import FAILED
from tilewright.errors import InputError, ToolError
from tilewright.tools.files import require_place

if TYPE_CHECKING:
    from tilewright.hardware.board.deployment import Recognition

__all__ = ["MACHINE", "MODEL", "QUICK_CYCLES_PER_BIT", "ModelOption", "build", "register", "send", "simulate"]

MODEL = "lenet5"
MACHINE = "nano"
QUICK_CYCLES_PER_BIT = 10

ModelOption = Annotated[str, typer.Option("--model", metavar="MODEL",
                                          help="Built-in model or .onnx file to run on the board.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    board = typer.Typer(help="Run LeNet-5 on a real FPGA board, over its serial line.", rich_markup_mode=None)
    ulx3s = typer.Typer(help="ULX3S with LFE5U-85F.", rich_markup_mode=None)
    ulx3s.command(epilog="Example: tilewright board ulx3s build -o out/ulx3s")(build)
    ulx3s.command(epilog="Example: tilewright board ulx3s simulate --digits 3")(simulate)
    ulx3s.command(epilog="Example: tilewright board ulx3s send --input digit.npy --port /dev/ttyUSB0")(send)
    board.add_typer(ulx3s, name="ulx3s")
    app.add_typer(board, name="board")


def build(output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                               help="Folder for ulx3s.bit and report.json.")],
          model: ModelOption = MODEL, machine: MachineName = MACHINE,
          seed: Annotated[int, typer.Option("--seed", help="Seed of place and route.")] = 1) -> None:
    """Build the bitstream with open tools: core, coprocessor, memories with program and weights, UART.

    This takes some minutes. Finished steps are kept, so another model of the same size then takes seconds.
    """
    size = machine_named(machine)
    source = model_named(model)
    output.mkdir(parents=True, exist_ok=True)
    from tilewright.cli.tables.text import console
    from tilewright.hardware.board.bitstream_folder import build_board, print_build
    from tilewright.hardware.board.deployment import board_with
    from tilewright.tools.progress import Steps

    steps = Steps()
    with steps.step(f"Compiling {model}"):
        board = board_with(source.path, size)
    files, report = build_board(board, output, steps, seed=seed)
    print_build(report, console())
    for path in files:
        typer.echo(path)


def simulate(digits: Annotated[int, typer.Option("--digits", metavar="N", help="Number of images to send.")] = 3,
             model: ModelOption = MODEL, machine: MachineName = MACHINE,
             cycles_per_bit: Annotated[int, typer.Option(
                 "--cycles-per-bit", metavar="N",
                 help="Clock cycles per bit of the serial line; the real line has 217, which takes most of the "
                      "simulation time.")]
             = QUICK_CYCLES_PER_BIT,
             json_file: JsonFile = None) -> None:
    """Simulate the system of the bitstream with Verilator: send images of digits and read the classes.

    Every value is compared with ONNX Runtime's, and the class with the label of the image.
    """
    if not 8 <= cycles_per_bit <= 0xFFFF:
        raise InputError(f"Cycles per bit must be in 8..65535, not {cycles_per_bit!r}")
    size = machine_named(machine)
    require_place(json_file)
    source = model_named(model)
    from tilewright.hardware.board.deployment import recognise_digits
    from tilewright.tools.progress import Steps

    found = recognise_digits(source.path, size, digits, Steps(), cycles_per_bit=cycles_per_bit)
    _show(found)
    if json_file is not None:
        write_json(json_file, {"model": model, "machine": machine, "digits": [
            {"label": each.label, "onnx_runtime": each.expected, "board": each.answer.class_,
             "cycles": each.answer.cycles, "values": each.answer.values, "equal": each.equal} for each in found]})
    if not all(each.right for each in found):
        raise typer.Exit(FAILED)


def send(port: Annotated[Path, typer.Option("--port", metavar="DEVICE", show_default=False,
                                            help="The board's serial port.")],
         model: ModelOption = MODEL, machine: MachineName = MACHINE, input_file: InputFile = None) -> None:
    """Send one input to a real board and print its answer; without --input, send the first digit.

    MODEL must be the one that the bitstream was built with, because it determines how the input is quantised.
    """
    size = machine_named(machine)
    source = model_named(model)
    from tilewright.hardware.board.deployment import answer_of, board_with, frame, frame_of
    from tilewright.hardware.board.serial import ask
    from tilewright.runtime.model_source import choose_inputs
    from tilewright.runtime.oracle.inputs import node_arg

    board = board_with(source.path, size)
    arrays = choose_inputs(board.program.inputs, source, input_file).arrays
    if (said := ask(port, frame(b""))) != board.program.greeting:
        raise ToolError(f"Board must answer with {board.program.greeting!r}, not {said!r}: give the --model and "
                        f"--machine that its bitstream was built with")
    answer = answer_of(ask(port, frame_of(board, *(arrays[node_arg(info).name] for info in board.program.inputs))))
    typer.echo(f"class {answer.class_}, {answer.cycles:,} cycles, values {' '.join(map(str, answer.values))}")


def _show(found: list["Recognition"]) -> None:
    for each in found:
        verdict = "every value equals ONNX Runtime's" if each.equal else "values DIFFER from ONNX Runtime's"
        typer.echo(f"digit {each.label}: the board says {each.answer.class_}, ONNX Runtime {each.expected}; {verdict}; "
                   f"{each.answer.cycles:,} cycles")
    typer.echo(f"{sum(each.right for each in found)} of {len(found)} right")
