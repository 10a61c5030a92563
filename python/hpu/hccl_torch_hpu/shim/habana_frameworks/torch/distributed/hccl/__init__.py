# SPDX-License-Identifier: Apache-2.0
"""Importing this module registers the backend "hccl" of torch.distributed.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch import _autoload, initialize_distributed_hpu
from torch import distributed

from hccl_torch_hpu.missing import missing

if distributed.is_available() and "hccl" not in distributed.Backend.backend_list:
    _autoload()

__all__ = ["initialize_distributed_hpu"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
