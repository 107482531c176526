"""Fit prices to measurements: non-negative, with the error of leaving out each workload in turn.

    energy = register_cycle · clocked register-cycles + register_toggle · register-bit toggles

What the clock takes is measured by itself: the price of a register's cycle is its mean, so that it holds for idle
blocks too. The price of a toggle is fitted to the rest. What is minimised is the sum of squared errors relative to the
whole energy: a quiet window counts as much as a busy one. Other events can take the place of toggles: the RISC-V core
is priced by its instructions.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from tilewright.errors import Error
from tilewright.hardware.gates.measure import Measurement

__all__ = ["FitError", "GatedFit", "PriceFit", "fit", "fit_gated", "non_negative", "relative_errors"]

_TERMS = ("register_cycle", "register_toggle")
"""The columns of the model of a block, by the names of prices in a technology file."""


class FitError(Error, ValueError):
    """There are too few measurements for a fit that means anything."""


@dataclass(frozen=True, slots=True)
class PriceFit:
    """Prices in pJ, and relative errors: of the fit, and of each workload with prices fitted to the others."""

    prices: Mapping[str, float]
    errors: Mapping[str, float]
    held_out: Mapping[str, float]

    @property
    def rms(self) -> float:
        """Root mean square of the held-out errors."""
        return float(np.sqrt(np.mean(np.square(list(self.held_out.values())))))

    @property
    def largest(self) -> float:
        """The largest held-out error, as a magnitude."""
        return max(map(abs, self.held_out.values()))

    @property
    def range(self) -> tuple[float, float]:
        """Factors from the model to the lowest and the highest measurement, each held out."""
        ratios = [1 / (1 + error) for error in self.held_out.values()]
        return min(1.0, *ratios), max(1.0, *ratios)


def fit(measurements: Mapping[str, Measurement], counts: Mapping[str, Sequence[int]] | None = None,
        events: Sequence[str] = _TERMS[1:]) -> PriceFit:
    """Return prices for a block from its measurements by workload.

    Parameters
    ----------
    measurements : mapping of str to Measurement
    counts : mapping of str to sequence of int, optional
        How often each of ``events`` happened, by workload; the register toggles if left out.
    events : sequence of str
        Names of their prices.

    Raises
    ------
    FitError
        If there are fewer than two measurements per price.
    """
    if counts is None:
        counts = {name: (each.register_toggles,) for name, each in measurements.items()}
    least = 2 * (1 + len(events))
    if len(measurements) < least:
        raise FitError(f"Fit must have at least {least} workloads, not {len(measurements)}")
    windows = {name: (each, tuple(counts[name])) for name, each in measurements.items()}
    held_out = {}
    for name, window in windows.items():
        held_out[name] = _error(_prices([other for key, other in windows.items() if key != name]), window)
    prices = _prices(windows.values())
    errors = {name: _error(prices, window) for name, window in windows.items()}
    return PriceFit(dict(zip((_TERMS[0], *events), prices, strict=True)), errors, held_out)


_Window = tuple[Measurement, tuple[int, ...]]
"""A measurement, and how often each event happened."""


def _prices(windows: Collection[_Window]) -> tuple[float, ...]:
    """Return the prices of a register's cycle and of each event."""
    cycle = sum(each.clock for each, _ in windows) / sum(each.register_cycles for each, _ in windows)
    rows = np.array([[count / each.energy for count in counts] for each, counts in windows])
    rest = np.array([1 - cycle * each.register_cycles / each.energy for each, _ in windows])
    return cycle, *map(float, non_negative(rows, rest))


def _error(prices: tuple[float, ...], window: _Window) -> float:
    """Return the relative error of the model."""
    measured, counts = window
    amounts = (measured.register_cycles, *counts)
    return sum(price * amount for price, amount in zip(prices, amounts, strict=True)) / measured.energy - 1


def non_negative(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the x >= 0 that minimises |rows · x - wanted|.

    With a few columns every set of positive ones can be tried: the best of the feasible ordinary solutions is it
    (Lawson and Hanson, Solving Least Squares Problems, chapter 23: at the optimum the others are zero).
    """
    columns = rows.shape[1]
    best, least = np.zeros(columns), float(wanted @ wanted)
    for size in range(1, columns + 1):
        for chosen in combinations(range(columns), size):
            solution = np.linalg.lstsq(rows[:, chosen], wanted, rcond=None)[0]
            residual = float(np.sum((rows[:, chosen] @ solution - wanted) ** 2))
            if (solution >= 0).all() and residual < least:
                best, least = np.zeros(columns), residual
                best[list(chosen)] = solution
    return best


def relative_errors(measurements: Mapping[str, Sequence[Measurement]], fits: Sequence[PriceFit]) -> dict[str, float]:
    """Return the error of the sum of several blocks, workload by workload, each block's prices fitted to the others.

    ``measurements`` are those of the blocks in the order of ``fits``.
    """
    errors = {}
    for name, blocks in measurements.items():
        predicted = sum(block.energy * (1 + each.held_out[name]) for block, each in zip(blocks, fits, strict=True))
        errors[name] = predicted / sum(block.energy for block in blocks) - 1
    return errors


@dataclass(frozen=True, slots=True)
class GatedFit:
    """A netlist with clock gates: measurements by workload, pJ per cycle of its clock when idle, and the price."""

    measured: Mapping[str, Measurement]
    idle: float
    prices: PriceFit


def fit_gated(measured: Mapping[str, Measurement], idle: float, counts: Mapping[str, Sequence[int]] | None = None,
              events: Sequence[str] = _TERMS[1:]) -> GatedFit:
    """Return the price of events with clock gates; ``counts`` and ``events`` are those of :func:`fit`.

        energy = idle clock · cycles + price · events

    An event carries the clock of the registers that are enabled with it.
    """
    apart = {name: replace(each, clock=idle * each.cycles, register_cycles=each.registers * each.cycles,
                           switching=each.energy - idle * each.cycles, internal=0.0)
             for name, each in measured.items()}
    return GatedFit(measured, idle, fit(apart, counts, events))
