# SPDX-License-Identifier: Apache-2.0
"""The module that inspects the state of Gaudi's software. The emulation provides none of its names.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing

__getattr__ = missing(__name__, "use torch.profiler or torch._logging")
