"""Qualcomm's AIMET on ONNX models: simulated quantisation with ranges from samples, written as QDQ."""

import onnx
from aimet_onnx.quantsim import QuantizationSimModel

from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


def _write(work: Work) -> None:
    simulation = QuantizationSimModel(onnx.load(work.model), **work.arguments)
    simulation.compute_encodings([{"image": each} for each in work.batches])
    onnx.save(simulation.to_onnx_qdq(), work.target)


if __name__ == "__main__":
    run(_write)
