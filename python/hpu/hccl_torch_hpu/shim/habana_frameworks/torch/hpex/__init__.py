# SPDX-License-Identifier: Apache-2.0
"""Fused operations, in plain torch code.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from habana_frameworks.torch.hpex import kernels, normalization, optimizers

from hccl_torch_hpu.missing import missing

__all__ = ["kernels", "normalization", "optimizers"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
