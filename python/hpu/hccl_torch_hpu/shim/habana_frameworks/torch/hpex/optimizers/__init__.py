# SPDX-License-Identifier: Apache-2.0
"""Optimizers.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from torch.optim import Adam, AdamW

from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.optimizers import (FusedAdagrad, FusedAdamW, FusedLamb, FusedLars, FusedResourceApplyMomentum,
                                       FusedSGD)

LARS = FusedLars

__all__ = ["Adam", "AdamW", "FusedAdagrad", "FusedAdamW", "FusedLamb", "FusedLars", "FusedResourceApplyMomentum",
           "FusedSGD", "LARS"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi",
                      SparseAdagrad="use torch.optim.Adagrad", SparseSGD="use torch.optim.SGD")
