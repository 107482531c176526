"""RISC-V cores that run programs: the hosts of the coprocessor, and the core of the baseline with SIMD instructions."""

from typing import Literal

__all__ = [
    "CORES", "HOSTS", "HOST_CORE", "IBEX_CORE", "XPULP_CORE", "CoreName", "HostName",
]

CoreName = Literal["cv32e40x", "cv32e40p"]
"""Cores that run a program alone."""

HostName = Literal["cv32e40x", "ibex"]
"""Cores that the simulated system can have beside the coprocessor."""

HOST_CORE: Literal["cv32e40x"] = "cv32e40x"
"""CV32E40X: scalar, with the interface for a coprocessor; alone, it runs the baseline in plain C."""

XPULP_CORE: CoreName = "cv32e40p"
"""CV32E40P: with the SIMD instructions of PULP, the stronger baseline."""

IBEX_CORE: HostName = "ibex"
"""Ibex: scalar, without an interface for coprocessors, so that it sends commands as stores to registers."""

CORES: tuple[CoreName, ...] = (HOST_CORE, XPULP_CORE)

HOSTS: tuple[HostName, ...] = (HOST_CORE, IBEX_CORE)
