# SPDX-License-Identifier: Apache-2.0
"""Looks at a Gaudi's time.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing

__getattr__ = missing(__name__, "use torch.profiler")
