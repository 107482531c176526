"""NVIDIA's Model Optimizer on ONNX models: int8 by maxima or entropy, operators chosen, int4 weights."""

from modelopt.onnx.quantization import quantize

from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


def _write(work: Work) -> None:
    quantize(onnx_path=str(work.model), calibration_data={"image": work.samples}, calibration_eps=["cpu"],
             output_path=str(work.target), high_precision_dtype="fp32", **work.arguments)


if __name__ == "__main__":
    run(_write)
