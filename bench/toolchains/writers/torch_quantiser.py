"""torch's own quantisation: layers of fake quantisation as in QAT, and PT2E; both through torch's exporters."""

import torch
from torch import nn
from torch.ao.quantization import (
    FakeQuantize,
    MovingAverageMinMaxObserver,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
)

from tilewright.bench.toolchains.writers.networks import SHAPES
from tilewright.bench.toolchains.writers.torch_builder import TorchNetwork, calibrated
from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__: list[str] = []


class _FakeQuantised(TorchNetwork):
    """Every product's weights, every result and the input behind a FakeQuantize."""

    def __init__(self, name: str, *, per_channel: bool, unsigned: bool) -> None:
        self._weights_by = default_per_channel_weight_fake_quant if per_channel else default_weight_fake_quant
        self._levels = (torch.quint8, 0, 255) if unsigned else (torch.qint8, -128, 127)
        super().__init__(name)

    def _fake(self) -> nn.Module:
        dtype, low, high = self._levels
        return FakeQuantize(observer=MovingAverageMinMaxObserver, quant_min=low, quant_max=high, dtype=dtype)

    def make_conv(self, inputs: int, channels: int, kernel: int, stride: int, pad: int, groups: int,
                  dims: int) -> nn.Module:
        return _FakeProduct(super().make_conv(inputs, channels, kernel, stride, pad, groups, dims), self._weights_by(),
                          self._fake())

    def make_dense(self, inputs: int, outputs: int) -> nn.Module:
        return _FakeProduct(super().make_dense(inputs, outputs), self._weights_by(), self._fake())

    def make_function(self, name: str) -> nn.Module:
        return nn.Sequential(super().make_function(name), self._fake())

    def add(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._behind(x + y)

    def times(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._behind(x * y)

    def average(self, x: torch.Tensor) -> torch.Tensor:
        return self._behind(super().average(x))

    def given(self, x: torch.Tensor) -> torch.Tensor:
        return self._behind(x)

    def _behind(self, x: torch.Tensor) -> torch.Tensor:
        if not self._made:
            self.layers.append(self._fake())
        return self._layer()(x)


class _FakeProduct(nn.Module):
    """A product whose weights and result are quantised."""

    def __init__(self, layer: nn.Module, by_weights: nn.Module, behind: nn.Module) -> None:
        super().__init__()
        self.layer, self.by_weights, self.behind = layer, by_weights, behind

    @property
    def weight(self) -> nn.Parameter:
        return self.layer.weight

    @property
    def bias(self) -> nn.Parameter:
        return self.layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.by_weights(self.layer.weight)
        if isinstance(self.layer, nn.Linear):
            return self.behind(nn.functional.linear(x, weights, self.layer.bias))
        return self.behind(self.layer._conv_forward(x, weights, self.layer.bias))


class _Fixed(nn.Module):
    """Quantise by ranges that no longer change."""

    def __init__(self, fake: FakeQuantize) -> None:
        super().__init__()
        self.register_buffer("scale", fake.scale.detach().clone())
        self.register_buffer("zero", fake.zero_point.detach().clone().to(torch.int32))
        self._axis, self._low, self._high = fake.ch_axis, fake.quant_min, fake.quant_max
        self._by_channel = self.scale.numel() > 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._by_channel:
            return torch.fake_quantize_per_channel_affine(x, self.scale, self.zero, self._axis, self._low, self._high)
        return torch.fake_quantize_per_tensor_affine(x, self.scale, self.zero, self._low, self._high)


def _fix(module: nn.Module) -> None:
    """Replace what observes ranges in a module by what keeps them."""
    for name, child in module.named_children():
        if isinstance(child, FakeQuantize):
            setattr(module, name, _Fixed(child))
        else:
            _fix(child)


def _write(work: Work) -> None:
    given = dict(work.arguments)
    example = torch.zeros(SHAPES[work.network])
    if given.pop("pt2e", False):
        _write_pt2e(work, example)
        return
    dynamo, opset = given.pop("dynamo", False), given.pop("opset", 17)
    network = _FakeQuantised(work.network, per_channel=given.get("per_channel", False),
                             unsigned=given.get("unsigned", False))
    calibrated(network, work.samples)
    network.apply(torch.ao.quantization.disable_observer)
    network.eval()
    if dynamo:      # Its exporter takes no module that counts its calls; what ranges have come to is left.
        _fix(network)
    torch.onnx.export(network, (example,), str(work.target), input_names=["image"], output_names=["output"],
                      opset_version=opset, dynamo=dynamo)


def _write_pt2e(work: Work, example: torch.Tensor) -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    quantizer = X86InductorQuantizer()
    quantizer.set_global(get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(TorchNetwork(work.network), (example,)).module(), quantizer)
    calibrated(prepared, work.samples)
    program = torch.export.export(convert_pt2e(prepared), (example,))
    torch.onnx.export(program, (example,), str(work.target), input_names=["image"], output_names=["output"],
                      dynamo=True)


if __name__ == "__main__":
    run(_write)
