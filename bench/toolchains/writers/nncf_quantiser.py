"""NNCF on ONNX models: its presets, targets and kinds of model, and weights alone."""

from typing import Any

import nncf
import onnx
from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, QuantizationParameters

from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


def _write(work: Work) -> None:
    given = dict(work.arguments)
    model = onnx.load(work.model)
    if mode := given.pop("weights_alone", None):
        onnx.save(nncf.compress_weights(model, mode=nncf.CompressWeightsMode[mode], **given), work.target)
        return
    choices: dict[str, Any] = {}
    for key, kind in (("preset", nncf.QuantizationPreset), ("model_type", nncf.ModelType),
                      ("target_device", nncf.TargetDevice)):
        if key in given:
            choices[key] = kind[given.pop(key)]
    per_tensor = given.pop("weights_per_tensor", False)
    advanced = AdvancedQuantizationParameters(
        weights_quantization_params=QuantizationParameters(per_channel=False) if per_tensor else None,
        activations_quantization_params=QuantizationParameters(per_channel=False), **given.pop("advanced", {}))
    quantised = nncf.quantize(model, nncf.Dataset([{"image": each} for each in work.batches]),
                              subset_size=len(work.samples), advanced_parameters=advanced, **choices, **given)
    onnx.save(quantised, work.target)


if __name__ == "__main__":
    run(_write)
