"""ESP-PPQ, the fork of PPQ that is maintained: an ONNX model quantised for a platform, written as QDQ."""

import torch
from esp_ppq import TargetPlatform
from esp_ppq.api import export_ppq_graph, quantize_onnx_model
from esp_ppq.api.setting import QuantizationSettingFactory

from tilewright.bench.toolchains.writers.networks import SHAPES
from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


def _write(work: Work) -> None:
    platform = TargetPlatform[work.arguments["platform"]]
    settings = QuantizationSettingFactory.default_setting()
    settings.equalization = work.arguments.get("equalised", False)
    graph = quantize_onnx_model(
        onnx_import_file=str(work.model), calib_dataloader=[torch.from_numpy(each) for each in work.batches],
        calib_steps=len(work.samples), input_shape=list(SHAPES[work.network]), platform=platform, setting=settings,
        collate_fn=lambda sample: sample, device="cpu", verbose=0)
    export_ppq_graph(graph, TargetPlatform.ONNXRUNTIME, graph_save_to=str(work.target))


if __name__ == "__main__":
    run(_write)
