# SPDX-License-Identifier: Apache-2.0
"""8-bit casts and products, as functions.

This is part of hccl-torch-hpu, an emulation; it is not a product of Habana Labs or Intel."""
import torch

from hccl_torch_hpu.missing import missing
from hccl_torch_hpu.numerics import ops

ops.register()

cast_to_fp8_v2 = torch.ops.hpu.cast_to_fp8_v2
cast_from_fp8 = torch.ops.hpu.cast_from_fp8
fp8_gemm_v2 = torch.ops.hpu.fp8_gemm_v2

__all__ = ["cast_from_fp8", "cast_to_fp8_v2", "fp8_gemm_v2"]

__getattr__ = missing(__name__, "see the list of names in the emulation's shim/README.md, or run on a Gaudi")
