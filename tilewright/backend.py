"""Tilewright as an ONNX backend: ``prepare``, ``run_model``, ``run_node``; see `runtime.onnx_backend`."""

from tilewright.runtime.onnx_backend import (
    Backend,
    BackendRep,
    is_compatible,
    prepare,
    run_model,
    run_node,
    supports_device,
)

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
