"""Tilewright: a RISC-V edge-accelerator co-design environment."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.runtime.session import InferenceSession

__version__ = "0.1.0"
__all__ = ["InferenceSession", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the session when it is asked for: it brings ONNX, which most modules do without."""
    if name == "InferenceSession":
        from tilewright.runtime.session import InferenceSession

        return InferenceSession
    raise AttributeError(f"Module 'tilewright' has no attribute {name!r}")
