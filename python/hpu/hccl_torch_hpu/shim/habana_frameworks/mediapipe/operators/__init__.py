# SPDX-License-Identifier: Apache-2.0
"""Steps of media pipelines; see the package cpu_nodes.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing

__getattr__ = missing(__name__, "decode images with torchvision, and load them with torch.utils.data.DataLoader")
