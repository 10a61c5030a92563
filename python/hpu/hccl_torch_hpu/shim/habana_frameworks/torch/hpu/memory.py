# SPDX-License-Identifier: Apache-2.0
"""Memory of the device.

All of it is that of ``torch.hpu``. This is part of hccl-torch-hpu, an emulation; it is no product of Habana Labs or
Intel."""
from __future__ import annotations

from typing import Any

from habana_frameworks.torch import hpu


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
    return getattr(hpu, name)
