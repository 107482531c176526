"""ONNX Runtime's quantiser, in the one place that calls it: from a float file and samples to an int8 file.

Activations are int8 with one scale per tensor, weights symmetric int8 with one scale per output channel: the form whose
integer kernels in ONNX Runtime can be matched bit for bit (int32 sum, one float32 multiplication, round half to even).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

__all__ = ["SampleReader", "quantise_file"]


class SampleReader(CalibrationDataReader):
    """Hands samples to ONNX Runtime one at a time: arrays by input name, and calls ``advance`` for each."""

    def __init__(self, feeds: Iterable[dict[str, np.ndarray]], advance: Callable[[], None] = lambda: None) -> None:
        self._rest, self._advance = iter(feeds), advance

    def get_next(self) -> dict[str, np.ndarray] | None:
        feed = next(self._rest, None)
        if feed is not None:
            self._advance()
        return feed


def quantise_file(plain: Path, target: Path, samples: SampleReader, *, form: QuantFormat = QuantFormat.QDQ,
                  operators: Sequence[str] = (), left: Sequence[str] = (),
                  given: Mapping[str, Sequence[Mapping[str, object]]] | None = None) -> None:
    """Write the float model in the file ``plain`` as int8 to ``target``.

    Parameters
    ----------
    plain, target : Path
    samples : SampleReader
        Inputs that determine the ranges.
    form : QuantFormat
        With Q/DQ nodes activations are symmetric; as integer operators they have zero points.
    operators : sequence of str
        Those to quantise, whatever stands before them; all that are known, behind quantised ones, if there are none.
    left : sequence of str
        Names of nodes that stay as they are.
    given : mapping of str to sequence of mapping, optional
        Quantisation of tensors by name, as option TensorQuantOverrides has it.
    """
    options: dict[str, object] = {"ActivationSymmetric": form is QuantFormat.QDQ, "WeightSymmetric": True}
    if operators:
        options["ForceQuantizeNoInputCheck"] = True
    if given:
        options["TensorQuantOverrides"] = {name: [dict(each) for each in levels] for name, levels in given.items()}
    quantize_static(plain, target, samples, quant_format=form, per_channel=True, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, op_types_to_quantize=list(operators) or None,
                    nodes_to_exclude=list(left), extra_options=options)
