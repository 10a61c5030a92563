# SPDX-License-Identifier: Apache-2.0
"""The environment variables of ranks.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch import initialize_distributed_hpu

from hccl_torch_hpu.missing import missing

__all__ = ["initialize_distributed_hpu"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
