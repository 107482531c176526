"""Find the model file for a name given by a user, where it comes from, and suitable inputs."""

import filecmp
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path

import numpy as np

from tilewright.compiler.network.layers import TensorInfo, UnreadInput
from tilewright.compiler.onnx.border import state_of
from tilewright.compiler.onnx.ends.proposed_ends import refuse_early
from tilewright.compiler.onnx.foreign_formats import foreign_folder
from tilewright.compiler.onnx.open_shapes import BATCH_NOTE, has_open_batch
from tilewright.compiler.onnx.other_quantisers import QONNX_NOTE
from tilewright.compiler.onnx.reader import DYNAMIC_NOTE, read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.tflite.mark import ENGINES, EngineName, names_tflite
from tilewright.errors import InputError, nearest
from tilewright.models import BUILTIN, LARGE, NAMES, PUBLISHED, builtin, is_large, large_file
from tilewright.runtime.oracle.conversion import as_type
from tilewright.runtime.oracle.inputs import Inputs, NodeArg, digit, node_args, picture, random_inputs, read_inputs
from tilewright.runtime.quantise.float_regions import (
    Precision,
    float_regions,
    is_quantised,
    left_in_float,
    precision_of,
)
from tilewright.runtime.quantise.quantised_model import (
    Quantised,
    RangesOrigin,
    ReadModel,
    quantised_here,
    ranges_of,
)
from tilewright.runtime.standard_file import Shapes, Values, standard_file
from tilewright.runtime.state_pairs import first_state
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["ModelOrigin", "ModelSource", "choose_inputs", "find_model", "model_folder"]


class ModelOrigin(Enum):
    """Origin of a model."""

    BUILT_IN = auto()
    """Committed with its weights."""

    LARGE = auto()
    """Built on first use, with seeded weights."""

    FILE = auto()
    """A user's file, or one that others published, as it is."""

    QUANTISED = auto()
    """Quantised here from a user's float model."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model to compile.

    Attributes
    ----------
    path : Path
        The ONNX file.
    origin : ModelOrigin
    quantised : Quantised or None
        The float model and the samples that it was made of, if it was quantised here and lies in the cache.
    ranges : RangesOrigin or None
        Source of its ranges, if it was quantised here, wherever it lies now.
    reading : tuple of str
        Sentences on what was changed when it was read.
    in_float : frozenset of str
        Nodes of a partly quantised model that are left in float and could be quantised; see `float_remark`.
    original : Path or None
        The user's own file, if it is ONNX, has the same outputs, and ``path`` was not quantised from it.
    completes : Path or None
        The file that computes something in float by itself, or quantises as it runs, if ``path`` was made of one.
    foreign : Path or None
        The user's own file, if it is in TensorFlow Lite's format.
    state : mapping of str to str
        By input that carries state, the output that it is in the next call: what variables of the file keep, and what
        a user states.
    """

    path: Path
    origin: ModelOrigin = ModelOrigin.FILE
    quantised: Quantised | None = None
    ranges: RangesOrigin | None = None
    reading: tuple[str, ...] = ()
    in_float: frozenset[str] = frozenset()
    original: Path | None = None
    completes: Path | None = None
    foreign: Path | None = None
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def own_file(self) -> Path:
        """The ONNX file as the user has it; that to compile, if it was made here."""
        return self.original or self.path

    @classmethod
    def of(cls, path: Path) -> "ModelSource":
        """Return the source of an ONNX file, determined from its contents."""
        return cls.known(path) or cls.of_model(path, read_model(path))

    @classmethod
    def known(cls, path: Path) -> "ModelSource | None":
        """Return the source of a file that is a built-in model or a large one; None if it is neither."""
        if any(filecmp.cmp(path, builtin(name), shallow=False) for name in BUILTIN):
            return cls(path, ModelOrigin.BUILT_IN)
        return cls(path, ModelOrigin.LARGE) if is_large(path, model_folder()) else None

    @classmethod
    def of_model(cls, path: Path, model: ReadModel) -> "ModelSource":
        """Return the source of any other file, which holds ``model``."""
        ranges = ranges_of(model)
        origin = ModelOrigin.FILE if ranges is None else ModelOrigin.QUANTISED
        reading = (*notes_of(model), *((BATCH_NOTE,) if has_open_batch(model) else ()))
        return cls(path, origin, quantised_here(path), ranges, reading,
                   left_in_float(model.graph) if origin is ModelOrigin.FILE else frozenset(), state=state_of(model))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the report: the source of the model's ranges, if quantised here, and changes when it was read."""
        ranges = () if self.ranges is None else (self.ranges.sentence, *self.ranges.remarks)
        return (*ranges, *self.reading)


def model_folder() -> Path:
    """Return where the large models are kept once they are built."""
    return cache_folder() / "models"


def find_model(name: str, steps: Steps, *, calibrate: Path | None = None, keep_float: bool = False,
               shapes: Shapes | None = None, values: Values | None = None, ends: Sequence[str] = (),
               engine: EngineName | None = None) -> ModelSource:
    """Return the model that a user names: a built-in one, built now if need be, or a file; a float one quantised.

    Parameters
    ----------
    name : str
        One of `models.NAMES`, or an ONNX file.
    calibrate : Path, optional
        Samples to quantise a float model with, instead of noise.
    keep_float : bool
        Leave a float model as it is.
    shapes : mapping of str to sequence of int, optional
        Shapes of a file's inputs by name, or extents by the symbol of an open dimension.
    values : mapping of str to sequence of float, optional
        Values of a file's inputs that are always the same; they become constants.
    ends : sequence of str
        Tensors at which a file's model ends before its own end.
    engine : {"litert", "litert-reference", "tflm"}, optional
        Whose arithmetic a .tflite file has.

    Raises
    ------
    CompileError
        If the file is no valid model.
    InputError
        If there is no such model, it cannot be quantised, or the options do not go together or with the model.
    """
    if calibrate is not None and keep_float:
        raise InputError("Options --calibrate and --float exclude each other: floats have no ranges")
    if shapes and name in NAMES:
        raise InputError(f"Option --shape needs a file with open dimensions, and {name} has none")
    if values and name in NAMES:
        raise InputError(f"Option --input-value needs a file, and {name} is built in")
    if ends and name in NAMES:
        raise InputError(f"Option --end needs a file, and {name} is built in")
    if engine is not None:
        require_tflite(name, engine)
    source, model = _named(name, steps, shapes or {}, values or {}, ends, engine)
    if model is not None and source.origin is ModelOrigin.FILE:
        precision = precision_of(model)
        if keep_float and precision is not Precision.QUANTISED:
            return source
        if calibrate is not None and DYNAMIC_NOTE in source.reading:
            return _with_fixed_ranges(source, model, calibrate, steps)
        if precision is Precision.FLOAT or (precision is Precision.MIXED and (
                calibrate is not None or _is_quantised_unasked(source, model))):
            return _quantised(source, model, calibrate, steps)
    if calibrate is not None or keep_float:
        file = source.path if name in NAMES else Path(name)
        raise InputError(f"Option {'--float' if keep_float else '--calibrate'} needs a float model, and {file.name} is "
                         "already quantised")
    return source


def require_tflite(name: str, engine: EngineName) -> None:
    """Raise :exc:`InputError` unless a model that is computed as ``engine`` does is a .tflite file."""
    if engine not in ENGINES:
        raise InputError(f"Reference of a .tflite file must be one of {', '.join(ENGINES)}, not {engine!r}")
    if name in NAMES or not (Path(name).is_file() and names_tflite(Path(name))):
        raise InputError(f"The arithmetic of {engine} needs a .tflite file, and {name} is none")


def _with_fixed_ranges(source: ModelSource, model: ReadModel, calibrate: Path, steps: Steps) -> ModelSource:
    """Return a model that quantises at run time, quantised by samples instead."""
    # Imported late, as the quantiser is.
    from tilewright.runtime.quantise.fixed_ranges import FIXED_NOTE, with_fixed_ranges

    fixed = with_fixed_ranges(model)
    if fixed is None:
        raise InputError(f"Option --calibrate needs a float model, or products as quantize_dynamic of ONNX Runtime or "
                         f"Neural Compressor writes them, and {source.path.name} is quantised dynamically in another "
                         f"form; give the float model that it was made from")
    left = any(node.op_type == "DynamicQuantizeLinear" for node in fixed.graph.node)
    reading = (*(note for note in source.reading if left or note != DYNAMIC_NOTE), FIXED_NOTE)
    return _quantised(replace(source, reading=reading), fixed, calibrate, steps)


def _is_quantised_unasked(source: ModelSource, model: ReadModel) -> bool:
    """Tell whether to quantise the float part of a model without being asked to.

    QONNX runs nowhere else as it is. Of it products in float are quantised.
    """
    return QONNX_NOTE in source.reading and any(region.products for region in float_regions(model.graph))


def _named(name: str, steps: Steps, shapes: Shapes, values: Values, ends: Sequence[str],
           engine: EngineName | None) -> tuple[ModelSource, ReadModel | None]:
    """Return a built-in model, a large one, built now if need be, or the file of this name, with what was read."""
    if name in BUILTIN:
        return ModelSource(builtin(name), ModelOrigin.BUILT_IN), None
    if name in PUBLISHED:
        return ModelSource(builtin(name)), read_model(builtin(name))
    if name not in LARGE:
        if not Path(name).is_file():
            raise _no_file(name)
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise InputError(f"Name of a model must have only letters of the locale's encoding, unlike {name!r}; set "
                             "LC_ALL=C.UTF-8, or rename the file")
        path, model = standard_file(Path(name), shapes, values, ends, engine or "litert")
        refuse_early(model)
        source = ModelSource.known(path) or ModelSource.of_model(path, model)
        if names_tflite(Path(name)):
            return replace(source, foreign=Path(name)), model
        return source if ends else replace(source, original=Path(name)), model
    if not (built := large_file(name, model_folder())).is_file():
        # Imported late: ONNX Runtime's quantiser takes a second.
        from tilewright.models.large import build

        with steps.step(f"Building {name}, once"):
            built = build(name, model_folder())
    return ModelSource(built, ModelOrigin.LARGE), None


def _no_file(name: str) -> InputError:
    """Return the error for a name that is neither a file's nor a built-in network's."""
    path = Path(name)
    if path.is_dir():
        known = foreign_folder(path) or ("a folder", "give an .onnx file in it, or another")
        return InputError(f"Model must be an .onnx file, and {name!r} is {known[0]}; {known[1]}")
    if path.suffix or path.parent != Path(".") or name.startswith("."):
        return InputError(f"Model must be an .onnx or .tflite file, and there is no file {name!r}{_files_near(path)}")
    if Path(f"{name}.onnx").is_file():
        return InputError(f"Model must be an .onnx file, and there is no file {name!r}; {name}.onnx is near")
    near = nearest(name, NAMES) or f"; the built-in networks are {', '.join(NAMES)}"
    return InputError(f"Model must be an .onnx file or a built-in network, and {name!r} is neither{near}")


def _files_near(path: Path) -> str:
    """Return the end of a sentence that says which ONNX file beside ``path`` has a name like it."""
    try:
        return nearest(path.name, (each.name for kind in ("*.onnx", "*.tflite") for each in path.parent.glob(kind)))
    except OSError:
        return ""


def _quantised(source: ModelSource, model: ReadModel, calibrate: Path | None, steps: Steps) -> ModelSource:
    # Imported late: it takes a second, and few models need it.
    from tilewright.runtime.quantise.quantiser import quantise

    asked = calibrate is not None and is_quantised(model.graph)
    quantised = quantise(model, source.path, calibrate, steps)
    return ModelSource(quantised.model, ModelOrigin.QUANTISED, quantised, quantised.ranges, source.reading,
                       completes=source.path if asked else None, state=source.state)


def choose_inputs(tensors: Sequence[TensorInfo], source: ModelSource, input_file: Path | None,
                  unread: Sequence[UnreadInput] = (), defaults: Collection[str] = (),
                  optional: Collection[str] = ()) -> Inputs:
    """Return the inputs in a file; without one, suitable inputs for a built-in model, and random values for others.

    ``tensors`` are those that the inputs are quantised to, ``Network.inputs``; ``unread`` and ``defaults`` are
    its too. A file may leave out those that are ``optional``. Without a file, state is as before the first call.

    Raises
    ------
    InputError
        If the file cannot be read, or does not hold the model's inputs.
    """
    expected = node_args(tensors)
    if input_file is not None:
        given = read_inputs(input_file, node_args(tensors, unread), [*(each.name for each in unread), *optional],
                            defaults)
        return Inputs(given, str(input_file))
    found = _suitable(tensors, expected, source)
    return replace(found, arrays=found.arrays | first_state(source.state, expected, tensors))


def _suitable(tensors: Sequence[TensorInfo], expected: Sequence[NodeArg], source: ModelSource) -> Inputs:
    """Return inputs that go with where a model is from; what carries state may have any values."""
    if source.origin is ModelOrigin.BUILT_IN:
        return digit(expected)
    if source.origin is ModelOrigin.LARGE:
        return picture(expected)
    if source.quantised is not None:
        # The model may have inputs that it does not read.
        (sample,) = source.quantised.feeds(1)
        images = next((each.shape[0] // len(sample[each.name]) for each in expected if each.shape), 1)
        if images == 1:
            arrays = {each.name: as_type(sample[each.name], each.dtype) for each in expected}
            return Inputs(arrays, "the first calibration sample")
        some = source.quantised.feeds(images)
        batch = {each.name: np.concatenate([some[index % len(some)][each.name] for index in range(images)])
                 for each in expected}
        return Inputs({each.name: as_type(batch[each.name], each.dtype) for each in expected},
                      f"the first {min(images, len(some))} calibration samples")
    return random_inputs(tensors)
