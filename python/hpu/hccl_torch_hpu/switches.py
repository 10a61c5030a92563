# SPDX-License-Identifier: Apache-2.0
"""Switches that change how a Gaudi computes, but not its results. Their values are stored; where Gaudi's API can
query them, programs can read them back. The emulated device ignores them, except that ``setDeterministic()`` sets
torch's own switch."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

__all__ = [
    "disable_const_section_serialization", "disable_dynamic_shape", "disable_inference_mode",
    "disable_matmul3d_2d_reshape", "disable_optim_output_sif", "disable_quantization",
    "enable_const_section_serialization", "enable_dynamic_shape", "enable_inference_mode", "enable_matmul3d_2d_reshape",
    "enable_optim_output_sif", "enable_quantization", "enable_recompute_sdp", "getDeterministic",
    "get_dynamic_shape_status", "get_sync_debug_mode", "is_inference_mode", "is_quantization_enabled",
    "recompute_sdp_enabled", "sdp_kernel", "setDeterministic", "set_sync_debug_mode",
]

_state: dict[str, Any] = {"dynamic_shape": False, "inference_mode": False, "quantization": False,
                          "matmul3d_2d_reshape": False, "optim_output_sif": False, "const_section": None,
                          "recompute_sdp": True, "sync_debug_mode": 0}


def enable_dynamic_shape() -> None:
    """Allows shapes to change. The emulated device accepts any shape anyway."""
    _state["dynamic_shape"] = True


def disable_dynamic_shape() -> None:
    """Declares that shapes do not change. The emulated device accepts any shape anyway."""
    _state["dynamic_shape"] = False


def get_dynamic_shape_status() -> bool:
    """Returns True after ``enable_dynamic_shape()``, until ``disable_dynamic_shape()``."""
    return _state["dynamic_shape"]


def enable_inference_mode() -> None:
    """Declares that the program only performs inference."""
    _state["inference_mode"] = True


def disable_inference_mode() -> None:
    """Undoes ``enable_inference_mode()``."""
    _state["inference_mode"] = False


def is_inference_mode() -> bool:
    """Returns True after ``enable_inference_mode()``, until ``disable_inference_mode()``."""
    return _state["inference_mode"]


def enable_quantization() -> None:
    """Declares that the model is quantized."""
    _state["quantization"] = True


def disable_quantization() -> None:
    """Undoes ``enable_quantization()``."""
    _state["quantization"] = False


def is_quantization_enabled() -> bool:
    """Returns True after ``enable_quantization()``, until ``disable_quantization()``."""
    return _state["quantization"]


def enable_matmul3d_2d_reshape() -> None:
    """Lets a Gaudi compute products of three-dimensional tensors as matrix products. The emulated device ignores
    this."""
    _state["matmul3d_2d_reshape"] = True


def disable_matmul3d_2d_reshape() -> None:
    """Undoes ``enable_matmul3d_2d_reshape()``."""
    _state["matmul3d_2d_reshape"] = False


def enable_optim_output_sif() -> None:
    """Lets a Gaudi infer the shapes of outputs faster. The emulated device ignores this."""
    _state["optim_output_sif"] = True


def disable_optim_output_sif() -> None:
    """Undoes ``enable_optim_output_sif()``."""
    _state["optim_output_sif"] = False


def enable_const_section_serialization(path: str, clear_path: bool, use_compression: bool) -> None:
    """Stores the folder for the constants of a model. The emulated device writes nothing to it."""
    _state["const_section"] = (path, clear_path, use_compression)


def disable_const_section_serialization() -> None:
    """Undoes ``enable_const_section_serialization()``."""
    _state["const_section"] = None


def enable_recompute_sdp(enabled: bool) -> None:
    """Selects whether a Gaudi recomputes attention weights in the backward pass. Does not affect the results."""
    _state["recompute_sdp"] = bool(enabled)


def recompute_sdp_enabled() -> bool:
    """Returns the last argument of ``enable_recompute_sdp()``, or True before the first call."""
    return _state["recompute_sdp"]


@contextlib.contextmanager
def sdp_kernel(enable_recompute: bool = True) -> Iterator[dict]:
    """Applies ``enable_recompute_sdp(enable_recompute)`` inside the context."""
    before = recompute_sdp_enabled()
    enable_recompute_sdp(enable_recompute)
    try:
        yield {}
    finally:
        enable_recompute_sdp(before)


def setDeterministic(val: bool) -> None:
    """Selects deterministic algorithms, like ``torch.use_deterministic_algorithms``."""
    torch.use_deterministic_algorithms(val)


def getDeterministic() -> bool:
    """Returns True if deterministic algorithms are selected."""
    return torch.are_deterministic_algorithms_enabled()


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Stores the mode. The emulated device never synchronises implicitly."""
    _state["sync_debug_mode"] = {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode)


def get_sync_debug_mode() -> int:
    """Returns the mode that ``set_sync_debug_mode()`` has stored."""
    return _state["sync_debug_mode"]
