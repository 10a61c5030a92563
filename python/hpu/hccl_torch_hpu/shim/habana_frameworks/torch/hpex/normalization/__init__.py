# SPDX-License-Identifier: Apache-2.0
"""Normalization.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.numerics.norm import FusedClipNorm, FusedRMSNorm, RmsNormBwdMode

__all__ = ["FusedClipNorm", "FusedRMSNorm", "RmsNormBwdMode"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
