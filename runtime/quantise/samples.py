"""Samples that determine a float model's ranges: read from a file and checked, or noise with a warning."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.errors import InputError
from tilewright.runtime.oracle.inputs import MAX_FILE_BYTES, UNREADABLE, NodeArg, read_arrays, safely
from tilewright.runtime.quantise.quantised_model import RangesKind, RangesOrigin
from tilewright.tools.files import reason

__all__ = ["NOISE_SAMPLES", "Calibration", "NoValuesError", "SamplesError", "noise", "read_calibration", "read_limited"]

NOISE_SAMPLES = 16
"""Of the quick look that a model gets without samples of its own."""

_BYTES = (np.uint8, np.int8)
_DEVIATION = 48.0
"""Standard deviation of noise of bytes, in levels: two and a half are 120."""

_SEED = 0


@dataclass(frozen=True, slots=True)
class Calibration:
    """Samples by input name, the first axis counting them, each of the input's shape; and where they are from."""

    arrays: Mapping[str, np.ndarray]
    ranges: RangesOrigin

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def feeds(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the inputs of each run."""
        for index in range(len(self)):
            yield {name: array[index, ...] for name, array in self.arrays.items()}


class SamplesError(InputError):
    """Samples cannot be read, or are not those of the model."""


def read_limited(path: Path) -> bytes:
    """Return the contents of a calibration file.

    Raises
    ------
    SamplesError
        If it cannot be read, or is too large to.
    """
    try:
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise SamplesError(f"Calibration file {str(path)!r} must have at most {MAX_FILE_BYTES} bytes, not {size}")
        return path.read_bytes()
    except OSError as error:
        raise SamplesError(f"Calibration file {str(path)!r} cannot be read: {reason(error)}") from error


def read_calibration(path: Path, expected: Sequence[NodeArg], unread: Collection[str] = ()) -> Calibration:
    """Return the samples in an ``.npz`` file (arrays by input name) or, for a model with one input, an ``.npy`` file.

    An ``.npz`` with one array serves a model with one input whatever its name. Numbers of another type become those of
    the model where none changes (`runtime.oracle.inputs.safely`); what is odd about samples is told as remarks. Inputs
    that are ``unread`` may be left out.

    Raises
    ------
    SamplesError
        If the file cannot be read, or an array has another name, type or shape, no samples, or values that are none.
    """
    if path.suffix not in (".npz", ".npy"):
        raise SamplesError(f"Calibration file must end in .npz or .npy, not {path.name!r}")
    try:
        arrays = read_arrays(path)
    except UNREADABLE as error:
        raise SamplesError(f"Calibration file {str(path)!r} cannot be read: {reason(error)}") from error
    names = [argument.name for argument in expected if argument.name not in unread or argument.name in arrays]
    if len(arrays) == len(names) == 1:
        arrays = {names[0]: next(iter(arrays.values()))}
    if set(arrays) != set(names):
        raise SamplesError(f"Calibration file {str(path)!r} must hold the arrays {', '.join(names)}, not "
                         f"{', '.join(arrays) or 'none'}")
    given = [argument for argument in expected if argument.name in names]
    checked = {argument.name: _samples(argument, arrays[argument.name]) for argument in given}
    remarks = [remark for argument in given if argument.name not in unread
               for remark in _remarks(argument.name, arrays[argument.name].dtype, checked[argument.name])]
    counts = {name: len(array) for name, array in checked.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
        raise SamplesError(f"Calibration arrays must all hold the same number of samples; {listed}")
    count = max(counts.values(), default=1)
    checked |= {argument.name: np.zeros((count, *argument.shape), argument.dtype)
                for argument in expected if argument.name not in names}
    return Calibration(checked, RangesOrigin(RangesKind.SAMPLES, count, path.name, tuple(remarks)))


def _samples(argument: NodeArg, array: np.ndarray) -> np.ndarray:
    """Return ``array`` as (samples, *shape of the input)."""
    shape = argument.shape
    batched = len(shape) > 1 and shape[0] == 1
    wanted = f"(samples, {', '.join(map(str, shape[1:] if batched else shape))})"
    given, array = array.dtype, safely(array, argument.dtype)
    if array.dtype != argument.dtype:
        wide = f" with values from {array.min()} to {array.max()}" if given.kind in "iu" and array.size else ""
        raise SamplesError(f"Calibration array {argument.name!r} must be {argument.dtype}, or hold numbers that "
                         f"{argument.dtype} holds, not {given}{wide}")
    if batched and array.ndim == len(shape) and array.shape[1:] == shape[1:]:
        array = array[:, np.newaxis]
    if array.ndim != len(shape) + 1 or array.shape[1:] != shape:
        raise SamplesError(f"Calibration array {argument.name!r} must have the shape {wanted}, not {array.shape}")
    if not len(array):
        raise SamplesError(f"Calibration array {argument.name!r} must hold at least one sample, not none")
    for index, sample in enumerate(array):
        if not np.isfinite(sample).all():
            raise SamplesError(f"Calibration array {argument.name!r} must hold "
                             f"only finite numbers, unlike sample {index}")
    return array


def _remarks(name: str, given: np.dtype, samples: np.ndarray) -> Iterator[str]:
    """Yield a sentence on each thing that is odd about the ``samples`` of an input, which came as type ``given``."""
    if given.kind in "iu" and samples.dtype.kind == "f":
        yield (f"array {name!r} of {given} was taken as {samples.dtype}, {samples.min():g} to {samples.max():g}, "
               "without scaling; give it as the network was trained, if that was with other numbers")
    flat = samples.reshape(len(samples), -1)
    zero = [index for index, sample in enumerate(flat) if not sample.any()]
    same = [] if flat.shape[1] == 1 else [index for index, sample in enumerate(flat)
                                          if sample.any() and (sample == sample[0]).all()]
    for found, what in ((zero, "all zero"), (same, "of one value throughout")):
        if len(found) == len(samples):
            yield f"every sample of {name!r} is {what}, so ranges mean nothing; give samples of real data"
        elif found:
            yield (f"{len(found)} of {len(samples)} samples of {name!r} are {what}, as sample {found[0]} is, and tell "
                   "little of ranges; leave them out, if they are no real data")
    if len(samples) > 1 and len(zero) + len(same) < len(samples) and (flat == flat[0]).all():
        yield (f"all {len(samples)} samples of {name!r} are equal, so ranges are those of one; give samples that "
               "differ as the data do")


class NoValuesError(InputError):
    """Nothing sensible can be made up for an input.

    Attributes
    ----------
    options : tuple of str
        The options with which the same command runs; empty if nothing tells a value.
    """

    def __init__(self, message: str, options: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.options = tuple(options)


def noise(expected: Sequence[NodeArg], unread: Collection[str] = (), bounds: Mapping[str, int] | None = None,
          usual: Mapping[str, int] | None = None) -> Calibration:
    """Return seeded noise for every input, ``NOISE_SAMPLES`` of it: images are smooth, as `models.images` has them.

    ``bounds`` has inputs of whole numbers, and the value below which each is drawn (`whole_numbers.whole_bounds`);
    ``usual`` those that are a setting, with its value (`given_shapes.proposed_values`), for the error.

    Raises
    ------
    NoValuesError
        If an input is neither float32, nor of 8 bits, nor a mask, has no bound, and is not ``unread``: nothing
        sensible can be made up for it.
    """
    rng, whole, values = np.random.default_rng(_SEED), bounds or {}, usual or {}
    for argument in expected:
        if argument.dtype not in (np.float32, *_BYTES) and argument.name not in {*unread, *whole} and \
                not _is_mask(argument):
            value = values.get(argument.name, "N")
            fixed = ("" if math.prod(argument.shape) > 1 else
                     f", or its value with --input-value {argument.name}={value} if it is always the same")
            raise NoValuesError(f"Input {argument.name!r} is {argument.dtype}, for which no values can be generated; "
                                f"give samples with --calibrate FILE{fixed}",
                                [word for name, each in values.items() for word in ("--input-value", f"{name}={each}")])
    arrays = {argument.name: np.zeros((NOISE_SAMPLES, *argument.shape), argument.dtype) if argument.name in unread
              else np.stack([_made_up(argument, rng, whole.get(argument.name)) for _ in range(NOISE_SAMPLES)])
              for argument in expected}
    drawn = [f"{each.name} below {whole[each.name]}" for each in expected if each.name in whole]
    return Calibration(arrays, RangesOrigin(RangesKind.NOISE, NOISE_SAMPLES, "; ".join((
        f"smooth noise, seed {_SEED}", *([f"whole numbers for {', '.join(drawn)}"] if drawn else [])))))


def _is_mask(argument: NodeArg) -> bool:
    """Tell whether an input says yes or no of many things; one alone is a setting."""
    return argument.dtype == np.bool_ and math.prod(argument.shape) > 1


def _made_up(argument: NodeArg, rng: np.random.Generator, bound: int | None = None) -> np.ndarray:
    """Return noise for an input; of bytes it fills their range but for a few, and below a bound it is even."""
    if bound is not None:
        return rng.integers(0, bound, argument.shape).astype(argument.dtype)
    if argument.dtype == np.bool_:
        return rng.random(argument.shape) < 0.5
    values = _smooth(argument.shape, rng)
    if argument.dtype == np.float32:
        return values
    bounds = np.iinfo(argument.dtype)
    middle = (bounds.max + bounds.min + 1) // 2
    return np.clip(np.rint(middle + _DEVIATION * values), bounds.min, bounds.max).astype(argument.dtype)


def _smooth(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return float32 noise of zero mean and unit variance; in images its amplitude falls as 1 / frequency."""
    if len(shape) < 3 or min(shape[-2:]) < 4:
        return rng.standard_normal(shape, np.float32)
    height, width = shape[-2:]
    frequency = np.hypot(np.fft.fftfreq(height)[:, np.newaxis], np.fft.rfftfreq(width))
    frequency[0, 0] = 1 / max(height, width)
    size = (*shape[:-1], width // 2 + 1)
    spectrum = (rng.standard_normal(size) + 1j * rng.standard_normal(size)) / frequency
    picture = np.fft.irfft2(spectrum, s=(height, width))
    picture -= picture.mean()
    return (picture / picture.std()).astype(np.float32)
