# SPDX-License-Identifier: Apache-2.0
"""Helpers for Gaudi programs.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from habana_frameworks.torch.utils import experimental, internal

from hccl_torch_hpu.missing import missing

__all__ = ["experimental", "internal"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
