# SPDX-License-Identifier: Apache-2.0
"""Finds the device.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from habana_frameworks.torch import hpu

from hccl_torch_hpu.missing import missing


def is_habana_available() -> bool:
    """Returns True if there is an emulated device."""
    return hpu.is_available()


def load_habana_module() -> None:
    """Does nothing: ``import torch`` loads the emulated device."""

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi",
                      load_habana_profiler="use torch.profiler")
