# SPDX-License-Identifier: Apache-2.0
"""Datasets of image folders.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.data import ImageFolderWithManifest
from hccl_torch_hpu.missing import missing

__all__ = ["ImageFolderWithManifest"]

__getattr__ = missing(__name__, "use torchvision.datasets")
