# SPDX-License-Identifier: Apache-2.0
"""Determines the emulated generation of Gaudi from ``HCCL_DEVICE_TYPE``: gaudi2 (the default) or gaudi3. The code also
handles the first generation, which the library hccl does not emulate."""
from __future__ import annotations

import enum
import os

import torch

VARIABLE = "HCCL_DEVICE_TYPE"


class synDeviceType(enum.IntEnum):  # noqa: N801 (the name that programs use)
    """The generations of Gaudi, numbered as in Synapse."""

    synDeviceGaudi = 2
    synDeviceGaudi2 = 4
    synDeviceGaudi3 = 5
    synDeviceTypeInvalid = 7


_TYPES = {"GAUDI": synDeviceType.synDeviceGaudi, "GAUDI2": synDeviceType.synDeviceGaudi2,
          "GAUDI3": synDeviceType.synDeviceGaudi3}

# The largest E4M3 values. Gaudi 2 uses the variant of the format whose largest value is 240.
_E4M3_MAX = {synDeviceType.synDeviceGaudi2: 240.0, synDeviceType.synDeviceGaudi3: 448.0}


def device_type() -> synDeviceType:
    """Returns the emulated generation.

    Raises:
        ValueError: ``HCCL_DEVICE_TYPE`` has an unknown value.
    """
    name = os.environ.get(VARIABLE, "gaudi2")
    if name.upper() not in _TYPES:
        raise ValueError(f"hccl_torch_hpu: {VARIABLE}={name}; it must be one of {', '.join(map(str.lower, _TYPES))}")
    return _TYPES[name.upper()]


def fp8_max(dtype: torch.dtype) -> float:
    """Returns the largest value that the emulated generation stores in an 8-bit float type.

    Raises:
        TypeError: ``dtype`` is neither ``float8_e4m3fn`` nor ``float8_e5m2``.
    """
    if dtype == torch.float8_e4m3fn:
        return _E4M3_MAX.get(device_type(), 448.0)
    if dtype == torch.float8_e5m2:
        return torch.finfo(dtype).max
    raise TypeError(f"hccl_torch_hpu: {dtype} is not an 8-bit float type that Gaudi supports; use float8_e4m3fn or float8_e5m2")


def has_fp8() -> bool:
    """Returns True if the emulated generation computes with 8-bit floats."""
    return device_type() != synDeviceType.synDeviceGaudi
