# SPDX-License-Identifier: Apache-2.0
"""Iterators over media pipelines; see the module iterator_pytorch.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing

__getattr__ = missing(__name__, "decode images with torchvision, and load them with torch.utils.data.DataLoader")
