# SPDX-License-Identifier: Apache-2.0
"""The fused optimizers of Gaudi, in plain torch code."""
from hccl_torch_hpu.optimizers.adagrad import FusedAdagrad
from hccl_torch_hpu.optimizers.adamw import FusedAdamW
from hccl_torch_hpu.optimizers.ema import FusedEMA
from hccl_torch_hpu.optimizers.lamb import FusedLamb
from hccl_torch_hpu.optimizers.lars import FusedLars
from hccl_torch_hpu.optimizers.momentum import FusedResourceApplyMomentum
from hccl_torch_hpu.optimizers.sgd import FusedSGD

__all__ = ["FusedAdagrad", "FusedAdamW", "FusedEMA", "FusedLamb", "FusedLars", "FusedResourceApplyMomentum", "FusedSGD"]
