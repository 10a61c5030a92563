# SPDX-License-Identifier: Apache-2.0
"""The functions that programs for Gaudi call before and after inference. The emulated device keeps no constants and
fuses nothing, so the model is not changed. The functions only record that the program performs inference."""
from __future__ import annotations

from typing import Any

import torch

from hccl_torch_hpu import switches


def hpu_set_inference_env(model: torch.nn.Module | None = None) -> torch.nn.Module | None:
    """Declares that the program only performs inference. Returns the model."""
    switches.enable_inference_mode()
    switches.enable_matmul3d_2d_reshape()
    return model


def hpu_inference_initialize(model: torch.nn.Module | None = None, mark_only_scales_as_const: bool = False,
                             optimizer: Any = None, args: Any = None) -> None:
    """Declares that the program only performs inference, with a model that is on the device and no longer changes."""
    hpu_set_inference_env()


def hpu_teardown_inference_env() -> None:
    """Reverses ``hpu_set_inference_env()``."""
    switches.disable_inference_mode()
    switches.disable_matmul3d_2d_reshape()


# Older names of these functions.
hpu_set_env = hpu_set_inference_env
hpu_initialize = hpu_inference_initialize
hpu_reset_env = hpu_teardown_inference_env
