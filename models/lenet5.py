"""LeNet-5, as published and in a form that suits an accelerator.

``lenet5`` follows LeCun et al., "Gradient-Based Learning Applied to Document Recognition", Proc. IEEE 86(11),
1998, with ReLU and max pooling. ``lenet5_accel`` follows the idea of "Optimizing CNN Computation Using RISC-V
Custom Instruction Sets for Edge Platforms", IEEE TC 73(5), 2024: each 5×5 kernel becomes two 3×3 kernels,
which see the same 5×5 pixels and suit Winograd's F(2×2,3×3). Both take (n, 1, 32, 32) and return ten logits,
(n, 10).

Accuracy on the 540 test digits, printed by ``python -m tilewright.models.train lenet5 lenet5_accel``:

    network        MACs      parameters   float32   int8     int8 QOperator
    lenet5         416,520   61,706       0.9963    0.9981   0.9963
    lenet5_accel   953,472   161,724      0.9870    0.9870   -

One digit is 0.0019: the set shows that nothing is broken, not which quantiser is better.
"""

from collections import OrderedDict

from torch import nn

__all__ = ["classifier", "lenet5", "lenet5_accel"]


def lenet5() -> nn.Sequential:
    """Build LeNet-5 with untrained weights: 5×5 convolutions without padding."""
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(1, 6, 5), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),           # (6, 14, 14)
        conv2=nn.Conv2d(6, 16, 5), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),          # (16, 5, 5)
        conv3=nn.Conv2d(16, 120, 5), relu3=nn.ReLU(),                               # (120, 1, 1)
        **classifier()))


def lenet5_accel() -> nn.Sequential:
    """Build LeNet-5 with untrained weights, each 5×5 convolution replaced by two of 3×3."""
    return nn.Sequential(OrderedDict(
        conv1a=nn.Conv2d(1, 6, 3), relu1a=nn.ReLU(),                                # (6, 30, 30)
        conv1b=nn.Conv2d(6, 6, 3), relu1b=nn.ReLU(), pool1=nn.MaxPool2d(2),         # (6, 14, 14)
        conv2a=nn.Conv2d(6, 16, 3), relu2a=nn.ReLU(),                               # (16, 12, 12)
        conv2b=nn.Conv2d(16, 16, 3), relu2b=nn.ReLU(), pool2=nn.MaxPool2d(2),       # (16, 5, 5)
        conv3a=nn.Conv2d(16, 120, 3), relu3a=nn.ReLU(),                             # (120, 3, 3)
        conv3b=nn.Conv2d(120, 120, 3), relu3b=nn.ReLU(),                            # (120, 1, 1)
        **classifier()))


def classifier() -> dict[str, nn.Module]:
    """Return the layers both networks end in, from (120, 1, 1) to ten logits."""
    return {"flatten": nn.Flatten(), "fc1": nn.Linear(120, 84), "relu4": nn.ReLU(), "fc2": nn.Linear(84, 10)}
