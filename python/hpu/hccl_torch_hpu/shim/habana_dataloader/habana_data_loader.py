# SPDX-License-Identifier: Apache-2.0
"""The data loader.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.data import HabanaDataLoader
from hccl_torch_hpu.missing import missing

__all__ = ["HabanaDataLoader"]

__getattr__ = missing(__name__, "use torch.utils.data.DataLoader")
