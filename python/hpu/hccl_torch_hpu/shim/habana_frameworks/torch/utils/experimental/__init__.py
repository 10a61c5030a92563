# SPDX-License-Identifier: Apache-2.0
"""Functions that describe the device.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from __future__ import annotations

import torch

from habana_frameworks.torch import hpu
from hccl_torch_hpu.devices import device_type as _get_device_type
from hccl_torch_hpu.devices import synDeviceType
from hccl_torch_hpu.missing import missing

__all__ = ["_data_ptr", "_get_device_type", "_is_fp16_supported", "hpu", "synDeviceType"]


def _is_available() -> bool:
    """Returns True if there is an emulated device."""
    return hpu.is_available()


def _data_ptr(t: torch.Tensor) -> int:
    """Returns the address of the tensor's first element."""
    return t.data_ptr()


def _is_fp16_supported() -> bool:
    """Returns True if the emulated generation computes in float16."""
    return _get_device_type() != synDeviceType.synDeviceGaudi


def _compute_stream() -> int:
    """Returns the number of the current stream, or 0 without a device."""
    return hpu.current_stream().stream_id if hpu.is_available() else 0

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
