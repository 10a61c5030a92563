# SPDX-License-Identifier: Apache-2.0
"""Pipeline steps that the program itself computes.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.media import media_function
from hccl_torch_hpu.missing import missing

__all__ = ["media_function"]

__getattr__ = missing(__name__, "decode images with torchvision, and load them with torch.utils.data.DataLoader")
