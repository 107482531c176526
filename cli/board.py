"""The commands ``board BOARD build``, ``simulate`` and ``send``; see `hardware.board.deployment`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tilewright.cli.options.arguments import InputFile, JsonFile, MachineName, machine_named, model_named, write_json
from tilewright.cli.options.refusals import FAILED
from tilewright.errors import InputError, ToolError
from tilewright.hardware.board.boards import BOARDS, Board, require_board
from tilewright.tools.files import require_place

if TYPE_CHECKING:
    from tilewright.hardware.board.deployment import Recognition

__all__ = ["MACHINE", "MODEL", "QUICK_CYCLES_PER_BIT", "ModelOption", "build", "register", "send", "simulate"]

DEFAULT = "ulx3s"
MODEL = "lenet5"
MACHINE = "nano"
QUICK_CYCLES_PER_BIT = 10

ModelOption = Annotated[str, typer.Option("--model", metavar="MODEL",
                                          help="Built-in model or .onnx file to run on the board.")]


class _Boards(TyperGroup):
    """The group of all boards, which says what it takes to add another."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the group of a board's commands."""
        require_board(cmd_name)
        return super().get_command(ctx, cmd_name)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    boards = typer.Typer(cls=_Boards, help="Run LeNet-5 on a real FPGA board, over its serial line.",
                         epilog=f"Example: tilewright board {DEFAULT} simulate --digits 3", rich_markup_mode=None,
                         subcommand_metavar="BOARD COMMAND [ARGS]...")
    for board in BOARDS.values():
        boards.add_typer(_commands(board), name=board.name)
    app.add_typer(boards, name="board")


def _commands(board: Board) -> typer.Typer:
    """Return the commands of one board."""
    group = typer.Typer(help=f"{board.title}.", rich_markup_mode=None,
                        epilog=f"Example: tilewright board {board.name} simulate --digits 3")

    @group.callback()
    def choose(context: typer.Context) -> None:
        context.obj = board

    group.command(epilog=f"Example: tilewright board {board.name} build -o out/{board.name}")(build)
    group.command(epilog=f"Example: tilewright board {board.name} simulate --digits 3")(simulate)
    group.command(epilog=f"Example: tilewright board {board.name} send --input digit.npy --port /dev/ttyUSB0")(send)
    return group


def _board(context: typer.Context) -> Board:
    """Return the board whose command is run."""
    board = context.find_object(Board)
    assert board is not None, "a board's group sets it"
    return board


def build(context: typer.Context,
          output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                               help="Folder for BOARD.bit and report.json.")],
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
    from tilewright.hardware.board.deployment import deploy
    from tilewright.tools.progress import Steps

    steps, board = Steps(), _board(context)
    with steps.step(f"Compiling {model}"):
        deployment = deploy(board, source.path, size)
    files, report = build_board(deployment, output, steps, seed=seed)
    print_build(report, console())
    for path in files:
        typer.echo(path)
    for command in board.load:
        typer.echo(command.format(file=files[0]))


def simulate(context: typer.Context,
             digits: Annotated[int, typer.Option("--digits", metavar="N", help="Number of images to send.")] = 3,
             model: ModelOption = MODEL, machine: MachineName = MACHINE,
             cycles_per_bit: Annotated[int, typer.Option(
                 "--cycles-per-bit", metavar="N",
                 help="Clock cycles per bit of the serial line; the real line has some 210, which takes most of the "
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

    board = _board(context)
    found = recognise_digits(board, source.path, size, digits, Steps(), cycles_per_bit=cycles_per_bit)
    _show(found)
    if json_file is not None:
        write_json(json_file, {"board": board.name, "model": model, "machine": machine, "digits": [
            {"label": each.label, "onnx_runtime": each.expected, "board": each.answer.class_,
             "cycles": each.answer.cycles, "values": each.answer.values, "equal": each.equal} for each in found]})
    if not all(each.right for each in found):
        raise typer.Exit(FAILED)


def send(context: typer.Context,
         port: Annotated[Path, typer.Option("--port", metavar="DEVICE", show_default=False,
                                            help="The board's serial port.")],
         model: ModelOption = MODEL, machine: MachineName = MACHINE, input_file: InputFile = None) -> None:
    """Send one input to a real board and print its answer; without --input, send the first digit.

    MODEL must be the one that the bitstream was built with, because it determines how the input is quantised.
    """
    size = machine_named(machine)
    source = model_named(model)
    from tilewright.hardware.board.deployment import answer_of, deploy, frame, frame_of
    from tilewright.hardware.board.serial import ask
    from tilewright.runtime.model_source import choose_inputs
    from tilewright.runtime.oracle.inputs import node_arg

    deployment = deploy(_board(context), source.path, size)
    program = deployment.program
    arrays = choose_inputs(program.inputs, source, input_file).arrays
    if (said := ask(port, frame(b""))) != program.greeting:
        raise ToolError(f"Board must answer with {program.greeting!r}, not {said!r}: give the --model and "
                        f"--machine that its bitstream was built with")
    answer = answer_of(ask(port, frame_of(deployment, *(arrays[node_arg(info).name] for info in program.inputs))))
    typer.echo(f"class {answer.class_}, {answer.cycles:,} cycles, values {' '.join(map(str, answer.values))}")


def _show(found: list["Recognition"]) -> None:
    for each in found:
        verdict = "every value equals ONNX Runtime's" if each.equal else "values DIFFER from ONNX Runtime's"
        typer.echo(f"digit {each.label}: the board says {each.answer.class_}, ONNX Runtime {each.expected}; {verdict}; "
                   f"{each.answer.cycles:,} cycles")
    typer.echo(f"{sum(each.right for each in found)} of {len(found)} right")
