"""Model and machine in every form in which a program may give them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from tilewright.compiler.tflite.mark import EngineName
from tilewright.isa.machine import DEFAULT_MACHINE, Machine
from tilewright.models import NAMES
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.given_samples import Samples, sample_file
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.tools.progress import Steps

__all__ = ["GivenMachine", "GivenModel", "ModelProto", "design_given", "file_content", "machine_given", "model_source",
           "named_path"]

_NAME = "model.onnx"


class ModelProto(Protocol):
    """An ``onnx.ModelProto``, of which the bytes are wanted."""

    def SerializeToString(self) -> bytes: ...


GivenModel = str | Path | bytes | ModelProto
"""A file, the name of a built-in model, or what an ONNX or .tflite file holds."""

GivenMachine = str | Machine | Design | None
"""Any value of ``--machine``, or the object that it stands for; None for the default machine."""


def design_given(machine: GivenMachine) -> Design | None:
    """Return the design that a caller has given, in whatever form; None if none."""
    if isinstance(machine, Machine):
        return Design(machine=machine)
    return design_of(machine) if isinstance(machine, str) else machine


def file_content(model: bytes | ModelProto) -> bytes:
    """Return the contents of an ONNX file of the model."""
    return model if isinstance(model, bytes) else model.SerializeToString()


def named_path(model: str | Path, steps: Steps) -> Path:
    """Return the file of a model: the given one, or that of a built-in name, unless a file has that name.

    Raises
    ------
    ToolError
        If a large built-in model cannot be built.
    """
    path = Path(model)
    return find_model(str(model), steps).path if str(model) in NAMES and not path.exists() else path


@contextmanager
def model_source(model: GivenModel, calibrate: Samples | None, steps: Steps,
                 reference: EngineName | None = None) -> Iterator[ModelSource]:
    """Yield the model as the commands of the command line take it: a float one quantised, with noise without samples.

    A .tflite file has the arithmetic of its ``reference``, of LiteRT's default session if None.

    Raises
    ------
    CompileError
        If the model is invalid.
    InputError
        If there is no such model, or it cannot be quantised with these samples.
    """
    with TemporaryDirectory(prefix="tilewright-") as folder:
        if isinstance(model, str | Path):
            name = str(model)
        else:
            file = Path(folder, _NAME)
            file.write_bytes(file_content(model))
            name = str(file)
        if calibrate is None:
            yield find_model(name, steps, engine=reference)
            return
        with sample_file(calibrate) as samples:
            yield find_model(name, steps, calibrate=samples, engine=reference)


def machine_given(machine: GivenMachine) -> Design:
    """Return the design that a caller has given, the default one if none."""
    return design_given(machine) or design_of(DEFAULT_MACHINE)
