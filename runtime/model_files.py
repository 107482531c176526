"""From a name to a model's file, and to the inputs it is run on: what the command line takes for MODEL."""

import filecmp
from collections.abc import Sequence
from pathlib import Path

from tilewright.compiler.network.layers import TensorInfo
from tilewright.errors import InputError
from tilewright.models import BUILTIN, LARGE, NAMES, builtin, is_large, large_file
from tilewright.runtime.oracle.inputs import Inputs, digit, node_args, picture, random_inputs, read_inputs
from tilewright.runtime.quantise.quantised_model import quantised_here
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder


def model_folder() -> Path:
    """Return where the large models are kept once they are built."""
    return cache_folder() / "models"


def model_file(name: str, steps: Steps) -> Path:
    """Return the ONNX file of a model: a committed one, a large one, built now if need be, or the file of this name.

    Raises
    ------
    InputError
        If there is none, or it must be built and torch is not installed.
    """
    if name in BUILTIN:
        return builtin(name)
    if name not in LARGE:
        if not Path(name).is_file():
            raise InputError(f"Model must be an .onnx file or one of {', '.join(NAMES)}, not {name!r}")
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise InputError(f"Name of a model must have letters of the locale's encoding, which {name!r} has not; set "
                             f"LC_ALL=C.UTF-8, or rename the file")
        return Path(name)
    if (built := large_file(name, model_folder())).is_file():
        return built
    try:
        from tilewright.models.large import build
    except ModuleNotFoundError as error:
        raise InputError(f"Model {name!r} is built on first use, which needs {error.name}: "
                         f"pip install 'tilewright[models]'") from error
    with steps.step(f"Building {name}, once"):
        return build(name, model_folder())


def ready_model(model: Path, calibrate: Path | None, keep_float: bool, steps: Steps) -> Path:
    """Return a model as it is compiled: a float one quantised, with samples of a file or of noise, unless it is kept.

    Raises
    ------
    CompileError
        If the file is no valid model.
    InputError
        If the options do not go together, or with the model; or it cannot be quantised.
    """
    if calibrate is not None and keep_float:
        raise InputError("Options --calibrate and --float must not be given together: floats have no ranges")
    named = model in (*map(builtin, BUILTIN), *(large_file(name, model_folder()) for name in LARGE))
    if not named:
        from tilewright.runtime.quantise.float_graph import is_float

        if is_float(model):
            return model if keep_float else _quantised(model, calibrate, steps)
    if calibrate is not None or keep_float:
        raise InputError(f"Option {'--float' if keep_float else '--calibrate'} must be given with a float model, and "
                         f"{model.name} is quantised already")
    return model


def _quantised(model: Path, calibrate: Path | None, steps: Steps) -> Path:
    # Imported late: it takes a second, and few models need it.
    from tilewright.runtime.quantise.quantiser import quantise

    return quantise(model, calibrate, steps).model


def choose_inputs(tensors: Sequence[TensorInfo], model: Path, input_file: Path | None) -> Inputs:
    """Return the inputs in a file; without one what suits a built-in model, and random values for others.

    ``tensors`` are those that the inputs are quantised to, ``Network.inputs``.

    Raises
    ------
    InputError
        If the file cannot be read, or does not hold the model's inputs.
    """
    expected = node_args(tensors)
    if input_file is not None:
        return Inputs(read_inputs(input_file, expected), str(input_file))
    if any(filecmp.cmp(model, builtin(name), shallow=False) for name in BUILTIN):
        return digit(expected)
    if is_large(model, model_folder()):
        return picture(expected)
    if (quantised := quantised_here(model)) is not None:
        # The model may have inputs that it does not read.
        sample = quantised.feeds(1)[0]
        return Inputs({each.name: sample[each.name] for each in expected}, "the first calibration sample")
    return random_inputs(tensors)
