# SPDX-License-Identifier: Apache-2.0
"""The module of Gaudi's distributed optimizers. The emulation provides none of its names.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
from hccl_torch_hpu.missing import missing

__getattr__ = missing(__name__, "use torch.distributed.optim.ZeroRedundancyOptimizer(optimizer_class=FusedAdamW)")
