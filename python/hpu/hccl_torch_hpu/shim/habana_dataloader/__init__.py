# SPDX-License-Identifier: Apache-2.0
"""Loads data, as torch.utils.data does.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu import vendor
from hccl_torch_hpu.missing import missing

vendor.refuse_beside_vendor()

from habana_dataloader import habana_dataset  # noqa: E402
from habana_dataloader.habana_data_loader import HabanaDataLoader  # noqa: E402

__all__ = ["HabanaDataLoader", "habana_dataset"]

__getattr__ = missing(__name__, "use torch.utils.data")
