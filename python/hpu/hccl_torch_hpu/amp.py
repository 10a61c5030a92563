# SPDX-License-Identifier: Apache-2.0
"""Mixed precision on the emulated device: ``torch.autocast`` and ``torch.amp.GradScaler`` for the device "hpu"."""
from __future__ import annotations

from typing import Any

import torch


class autocast(torch.autocast):  # noqa: N801
    """``torch.autocast`` on the device."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.bfloat16, cache_enabled: bool = True):
        super().__init__("hpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """``torch.amp.GradScaler`` for the device."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("hpu", *args, **kwargs)
