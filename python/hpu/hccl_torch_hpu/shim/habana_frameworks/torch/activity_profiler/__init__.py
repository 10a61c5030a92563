# SPDX-License-Identifier: Apache-2.0
"""The Gaudi profiler's module. The emulation provides none of its names; use torch.profiler.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing

__getattr__ = missing(__name__, "use torch.profiler")
