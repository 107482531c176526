"""Tilewright: a RISC-V edge-accelerator co-design environment.

The names below are the public interface. Each is imported when it is first used, so ``import tilewright`` is fast: only
the session imports ONNX and NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilewright._version import __version__

if TYPE_CHECKING:
    from tilewright.compiler.network.options import Options
    from tilewright.energy.pricing import Pricing
    from tilewright.errors import (
        CompileError,
        Error,
        FloatOnCoreWarning,
        InputError,
        InternalError,
        SimulationError,
        ToolError,
    )
    from tilewright.functions import CompiledModel, ExploredDesign, ExploredFront, check, compare, compile, explore
    from tilewright.isa.machine import PRESETS, Machine, MemoryTiming
    from tilewright.runtime.check.model_check import Check
    from tilewright.runtime.compare.layer_report import LayerComparison
    from tilewright.runtime.design.design import Design
    from tilewright.runtime.design.design_flags import design_of
    from tilewright.runtime.execution.report import LayerReport, Report
    from tilewright.runtime.run_options import RunOptions
    from tilewright.runtime.session import InferenceSession, SessionArg

__all__ = ["PRESETS", "Check", "CompileError", "CompiledModel", "Design", "Error", "ExploredDesign", "ExploredFront",
           "FloatOnCoreWarning", "InferenceSession", "InputError", "InternalError", "LayerComparison", "LayerReport",
           "Machine", "MemoryTiming", "Options", "Pricing", "Report", "RunOptions", "SessionArg", "SimulationError",
           "ToolError", "__version__", "check", "compare", "compile", "design_of", "explore"]

_HOMES = {
    "tilewright.compiler.network.options": ("Options",),
    "tilewright.energy.pricing": ("Pricing",),
    "tilewright.errors": ("CompileError", "Error", "FloatOnCoreWarning", "InputError", "InternalError",
                          "SimulationError", "ToolError"),
    "tilewright.functions": ("CompiledModel", "ExploredDesign", "ExploredFront", "check", "compare", "compile",
                             "explore"),
    "tilewright.isa.machine": ("PRESETS", "Machine", "MemoryTiming"),
    "tilewright.runtime.check.model_check": ("Check",),
    "tilewright.runtime.compare.layer_report": ("LayerComparison",),
    "tilewright.runtime.design.design": ("Design",),
    "tilewright.runtime.design.design_flags": ("design_of",),
    "tilewright.runtime.execution.report": ("LayerReport", "Report"),
    "tilewright.runtime.run_options": ("RunOptions",),
    "tilewright.runtime.session": ("InferenceSession", "SessionArg"),
}
"""The module that defines each public name."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"Module 'tilewright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
