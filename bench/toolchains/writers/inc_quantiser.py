"""Intel's Neural Compressor on ONNX models: its post-training quantisation, static and dynamic, in either format."""

from collections.abc import Iterator

import numpy as np
from neural_compressor import PostTrainingQuantConfig, quantization
from neural_compressor.config import AccuracyCriterion, TuningCriterion

from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


class _Loader:
    """Samples one by one, with a label that nobody reads."""

    batch_size = 1

    def __init__(self, batches: list[np.ndarray]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[tuple[np.ndarray, int]]:
        return ((each, 0) for each in self._batches)


def _write(work: Work) -> None:
    config = PostTrainingQuantConfig(
        calibration_sampling_size=len(work.samples), tuning_criterion=TuningCriterion(max_trials=1),
        accuracy_criterion=AccuracyCriterion(tolerable_loss=0.9), **work.arguments)
    found = quantization.fit(model=str(work.model), conf=config, calib_dataloader=_Loader(work.batches))
    if found is None:
        raise ValueError("quantization.fit has found no model")
    found.save(str(work.target))


if __name__ == "__main__":
    run(_write)
