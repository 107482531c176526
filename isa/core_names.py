"""RISC-V cores that programs run on: the coprocessor's host, and the one of the baseline with SIMD instructions."""

from typing import Literal

__all__ = ["CORES", "HOST_CORE", "XPULP_CORE", "CoreName"]

CoreName = Literal["cv32e40x", "cv32e40p"]

HOST_CORE: CoreName = "cv32e40x"
"""CV32E40X: scalar, with the interface for a coprocessor; alone, it runs the baseline in plain C."""

XPULP_CORE: CoreName = "cv32e40p"
"""CV32E40P: with the SIMD instructions of PULP, the stronger baseline."""

CORES: tuple[CoreName, ...] = (HOST_CORE, XPULP_CORE)
