# SPDX-License-Identifier: Apache-2.0
"""Switches of the Gaudi compiler. Programs can read and set them, but the emulation compiles nothing.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from __future__ import annotations

from typing import Any

# Switches by name. Those that have not been set are False.
configuration_flags: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
    return configuration_flags.get(name, False)
