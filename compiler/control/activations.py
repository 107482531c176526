"""Activations of recurrent operators: which operator of ONNX computes each, with what constants.

Source: the definitions of RNN, GRU and LSTM in ONNX's operator specification (onnx/onnx, docs/Operators.md). The
defaults are those of the operators of the same names; numbers are taken from the lists in the order of the activations
that have them, as ONNX Runtime does (rnn_helpers.cc).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.control.node_writer import NodeWriter

__all__ = ["Activation", "activations_of"]

_DEFAULTS: dict[str, tuple[float | None, float | None]] = {
    "sigmoid": (None, None), "tanh": (None, None), "relu": (None, None), "softsign": (None, None),
    "softplus": (None, None), "affine": (1.0, 0.0), "leakyrelu": (0.01, None), "thresholdedrelu": (1.0, None),
    "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0, None)}
"""Alpha and beta of each activation, where it has them."""

_PLAIN = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "softsign": "Softsign", "softplus": "Softplus"}
_WITH_ALPHA = {"leakyrelu": "LeakyRelu", "thresholdedrelu": "ThresholdedRelu", "elu": "Elu"}


@dataclass(frozen=True, slots=True)
class Activation:
    """A function, by its name in lower case, with its numbers, and the bound of what it is computed of (0: none)."""

    name: str
    alpha: float | None
    beta: float | None
    clip: float = 0.0

    def of(self, value: str, what: str, writer: NodeWriter) -> str:
        """Write the function of a tensor, and return its result."""
        if self.clip:
            bounds = [writer.constant(f"{side} bound", np.array(bound, np.float32))
                      for side, bound in (("lower", -self.clip), ("upper", self.clip))]
            value = writer.add("Clip", [value, *bounds], f"{what} bounded")
        if self.name in _PLAIN:
            return writer.add(_PLAIN[self.name], [value], what)
        assert self.alpha is not None
        if self.name in _WITH_ALPHA:
            return writer.add(_WITH_ALPHA[self.name], [value], what, alpha=self.alpha)
        assert self.beta is not None
        if self.name == "hardsigmoid":
            return writer.add("HardSigmoid", [value], what, alpha=self.alpha, beta=self.beta)
        alpha, beta = (writer.constant(f"{self.name} {which} {number:g}", np.array(number, np.float32))
                       for which, number in (("alpha", self.alpha), ("beta", self.beta)))
        if self.name == "affine":
            return writer.add("Add", [writer.add("Mul", [value, alpha], f"{what} scaled"), beta], what)
        inner = writer.add("Tanh", [writer.add("Mul", [value, beta], f"{what} scaled")], f"{what} tanh")
        return writer.add("Mul", [inner, alpha], what)


def activations_of(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float],
                   clip: float) -> list[Activation]:
    """Return the activations that a node names, for all directions one after the other.

    Raises
    ------
    KeyError
        With its name, if one of them is none of ONNX's.
    """
    numbers = iter(alphas), iter(betas)
    found = []
    for name in names:
        if (defaults := _DEFAULTS.get(name.lower())) is None:
            raise KeyError(name)
        alpha, beta = (None if default is None else next(given, default)
                       for default, given in zip(defaults, numbers, strict=True))
        found.append(Activation(name.lower(), alpha, beta, clip))
    return found
