"""Brevitas: layers with fake quantisation, exported to QDQ by either of torch's exporters."""

import torch
from brevitas import nn as qnn
from brevitas.export import export_onnx_qcdq
from brevitas.graph.calibrate import calibration_mode
from brevitas.quant import (
    Int8ActPerTensorFloat,
    Int8Bias,
    Int8WeightPerChannelFloat,
    Int8WeightPerTensorFloat,
    Uint8ActPerTensorFloat,
)
from torch import nn

from tilewright.bench.toolchains.writers.torch_builder import TorchNetwork, calibrated
from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


class _Network(TorchNetwork):
    """Every product with quantised weights and a quantised result, every sum of what is quantised alike."""

    def __init__(self, name: str, *, per_channel: bool, bits: int, bias: bool) -> None:
        self._weights_by = Int8WeightPerChannelFloat if per_channel else Int8WeightPerTensorFloat
        self._options = {"weight_quant": self._weights_by, "weight_bit_width": bits,
                         "bias_quant": Int8Bias if bias else None, "return_quant_tensor": False}
        self._numbers: list[nn.Module] = []
        super().__init__(name)

    def make_conv(self, inputs: int, channels: int, kernel: int, stride: int, pad: int, groups: int,
                  dims: int) -> nn.Module:
        kind = qnn.QuantConv1d if dims == 1 else qnn.QuantConv2d
        return kind(inputs, channels, kernel, stride, pad, groups=groups, bias=True,
                    output_quant=Int8ActPerTensorFloat, **self._options)

    def make_widen(self, inputs: int, channels: int) -> nn.Module:
        return qnn.QuantConvTranspose2d(inputs, channels, 2, 2, bias=True, output_quant=Int8ActPerTensorFloat,
                                        **self._options)

    def make_dense(self, inputs: int, outputs: int) -> nn.Module:
        return qnn.QuantLinear(inputs, outputs, bias=True, output_quant=Int8ActPerTensorFloat, **self._options)

    def make_function(self, name: str) -> nn.Module:
        if name == "relu":
            return qnn.QuantReLU(act_quant=Uint8ActPerTensorFloat)
        if name == "sigmoid":
            return qnn.QuantSigmoid(act_quant=Uint8ActPerTensorFloat)
        return nn.Sequential(super().make_function(name), qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat))

    def given(self, x: torch.Tensor) -> torch.Tensor:
        return self._identity()(x)

    def joined(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        same = self._identity()
        return tuple(same(each) for each in values)

    def _identity(self) -> nn.Module:
        if not self._made:
            self.layers.append(qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat))
        return self._layer()


def _write(work: Work) -> None:
    given = dict(work.arguments)
    network = _Network(work.network, per_channel=given.get("per_channel", False), bits=given.get("bits", 8),
                       bias=given.get("bias", False))
    network.eval()
    with calibration_mode(network):
        calibrated(network, work.samples)
    calibrated(network, work.samples[:1])
    export_onnx_qcdq(network, args=torch.from_numpy(work.samples[:1]), export_path=str(work.target),
                     opset_version=given.get("opset", 17), dynamo=given.get("dynamo", False),
                     input_names=["image"])


if __name__ == "__main__":
    run(_write)
