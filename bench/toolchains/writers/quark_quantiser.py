"""AMD Quark on ONNX models: its named configurations."""

from typing import Any

from onnxruntime.quantization import CalibrationDataReader
from quark.onnx import ModelQuantizer
from quark.onnx.quantization.config import Config, get_default_config

from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


class _QuarkReader(CalibrationDataReader):
    def __init__(self, work: Work) -> None:
        self._left = [{"image": each} for each in work.batches]

    def get_next(self) -> dict[str, Any] | None:
        return self._left.pop() if self._left else None


def _write(work: Work) -> None:
    config = get_default_config(work.arguments["config"])
    for key, value in work.arguments.items():
        if key != "config":
            setattr(config, key, value)
    ModelQuantizer(Config(global_quant_config=config)).quantize_model(str(work.model), str(work.target),
                                                                      _QuarkReader(work))


if __name__ == "__main__":
    run(_write)
